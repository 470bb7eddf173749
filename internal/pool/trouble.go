package pool

import "github.com/sluicehq/sluice/store"

// maxFailures is where the count of consecutive failures stops.
const maxFailures = 1_000_000

// unpaidFor is how long after its last billing stop a key counts as not paid for while other keys are served.
const unpaidFor = 15 * minute

// served counts consecutive failures of the provider. A refusal ends them: the provider responds and has a reason. Billing
// stops last until a person acts, so they are counted like failures, but apart from them.
func (p *Pool) served(op *store.Op, key int32) {
	switch op.Verdict {
	case store.VerdictUnreachable, store.VerdictOverloaded, store.VerdictBilling:
		p.fail(op, key)
	case store.VerdictError:
		if op.Cause != "" && op.Rejected == 0 { // otherwise it says nothing about the provider
			p.fail(op, key)
		}
	case store.VerdictNone:
	default:
		if p.failures > 0 {
			p.endFailuresOf(key)
		}
	}
}

// endFailuresOf ends the streak because a request with a key was served. A key that is paid for says nothing about one
// that is not, as long as that one has been used lately.
func (p *Pool) endFailuresOf(key int32) {
	if p.unpaid && p.unpaidKey != 0 && p.unpaidKey != key && p.now-p.failed < unpaidFor {
		return
	}
	p.endFailures()
}

func (p *Pool) endFailures() {
	if p.failures == 0 {
		return
	}
	p.names.Drop(p.failure)
	p.names.Drop(p.unpaidKey)
	p.unpaidKey = 0
	p.failures, p.unreached, p.unpaid, p.failure, p.failing, p.failed = 0, false, false, 0, 0, 0
}

func (p *Pool) fail(op *store.Op, key int32) {
	unpaid := op.Verdict == store.VerdictBilling
	if unpaid != p.unpaid {
		p.endFailures()
	}
	if p.failures == 0 {
		p.failing = p.now
	}
	p.failed = p.now
	if p.failures < maxFailures {
		p.failures++
	}
	p.unreached = p.unreached || op.Verdict == store.VerdictUnreachable
	p.unpaid = unpaid
	cause := op.Cause
	if cause == "" {
		cause = op.Verdict.String()
	}
	old := p.failure
	p.failure = p.names.Hold(cause[:min(len(cause), store.MaxName)])
	p.names.Drop(old)
	if unpaid {
		old = p.unpaidKey
		p.unpaidKey = p.names.Keep(key)
		p.names.Drop(old)
	}
}

func (p *Pool) trouble() store.Trouble {
	if p.failures == 0 {
		return store.Trouble{}
	}
	return store.Trouble{
		Count: int(p.failures), Unreached: p.unreached, Unpaid: p.unpaid, Since: store.Time(p.failing), Last: store.Time(p.failed), Cause: p.names.Text(p.failure),
	}
}
