package pool

import "github.com/sluicehq/sluice/store"

// maxFailures is where a streak is no longer counted.
const maxFailures = 1_000_000

// served takes in whether a send was served. A refusal is an answer too: the provider is there, and knows why it says no.
func (p *Pool) served(op *store.Op) {
	unreached := op.Verdict == store.VerdictUnreachable
	switch {
	case unreached, op.Verdict == store.VerdictOverloaded, op.Verdict == store.VerdictError && op.Cause != "":
		p.fail(op, unreached)
	case op.Verdict == store.VerdictNone, op.Verdict == store.VerdictError: // they say nothing of the provider
	case p.failures > 0:
		p.names.Drop(p.failure)
		p.failures, p.unreached, p.failure, p.failing, p.failed = 0, false, 0, 0, 0
	}
}

func (p *Pool) fail(op *store.Op, unreached bool) {
	if p.failures == 0 {
		p.failing = p.now
	}
	p.failed = p.now
	if p.failures < maxFailures {
		p.failures++
	}
	p.unreached = p.unreached || unreached
	cause := op.Cause
	if cause == "" {
		cause = op.Verdict.String()
	}
	old := p.failure
	p.failure = p.names.Hold(cause[:min(len(cause), store.MaxName)])
	p.names.Drop(old)
}

func (p *Pool) trouble() store.Trouble {
	if p.failures == 0 {
		return store.Trouble{}
	}
	return store.Trouble{
		Count: int(p.failures), Unreached: p.unreached, Since: store.Time(p.failing), Last: store.Time(p.failed), Cause: p.names.Text(p.failure),
	}
}
