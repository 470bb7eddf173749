package main

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// maxTold is how many events may wait to be logged. Senders do not wait for a log that is not read.
const maxTold = 256

// teller logs what people should know: when trouble begins and when it ends.
type teller struct {
	log    *slog.Logger
	events chan inspect.Event
	over   chan struct{} // closed to end it
	done   chan struct{}

	lost   map[string]bool // resources whose store is unreachable
	unsaid map[string]bool // degraded resources, already reported as an outage of the whole store

	rejected sync.Map // resources whose first rejection is reported: resource to struct{}
}

func newTeller(log *slog.Logger) *teller {
	t := &teller{log: log, events: make(chan inspect.Event, maxTold), over: make(chan struct{}), done: make(chan struct{}), lost: map[string]bool{}, unsaid: map[string]bool{}}
	go t.run()
	return t
}

// Event queues an event. It does not block: events beyond the bound are dropped.
func (t *teller) Event(e inspect.Event) {
	switch e.Kind {
	case inspect.EventAnswer:
		if !inspect.Rejects(e.Status, e.Verdict) {
			return
		}
		if _, known := t.rejected.LoadOrStore(e.Resource, struct{}{}); known {
			return
		}
		select {
		case t.events <- e:
		default:
			t.rejected.Delete(e.Resource) // the next one is reported
		}
	case inspect.EventState, inspect.EventStoreLost, inspect.EventStoreBack, inspect.EventBudget, inspect.EventBudgetBack, inspect.EventLeaseLost, inspect.EventLeaseBack,
		inspect.EventTakenOver, inspect.EventUpstream, inspect.EventKeyAside, inspect.EventAdvice, inspect.EventLogFault:
		select {
		case t.events <- e:
		default:
		}
	}
}

// close logs the remaining events. Later events are dropped.
func (t *teller) close() {
	close(t.over)
	<-t.done
}

func (t *teller) run() {
	defer close(t.done)
	for {
		select {
		case e := <-t.events:
			t.tell(&e)
			continue
		default:
		}
		select {
		case e := <-t.events:
			t.tell(&e)
		case <-t.over:
			return
		}
	}
}

func (t *teller) tell(e *inspect.Event) {
	after := show.Span((time.Duration(e.ForMS) * time.Millisecond).Truncate(time.Second))
	switch e.Kind {
	case inspect.EventState:
		t.state(e, after)
	case inspect.EventStoreLost: // every resource reports it
		if len(t.lost) == 0 {
			t.log.Error("the store is out of reach", "error", e.Error, "meanwhile", meanwhile[e.Mode])
		}
		t.lost[e.Resource] = true
	case inspect.EventStoreBack:
		if delete(t.lost, e.Resource); len(t.lost) == 0 {
			t.log.Info("the store is back", "after", after, "let_go_without_it", e.Count)
		}
	case inspect.EventLogFault:
		t.logFault(e)
	case inspect.EventBudget:
		t.log.Warn("a budget is used up", "budget", e.Limit, "who", e.Scope, "used_usd", usd(e.Used), "size_usd", usd(e.Size), "over", e.Reason, "until", endText(e.Until))
	case inspect.EventBudgetBack:
		t.log.Info("a budget started a new period", "budget", e.Limit, "who", e.Scope, "size_usd", usd(e.Size))
	case inspect.EventLeaseLost:
		if e.Consecutive <= 1 {
			t.log.Warn("an agent has lost its lease", "agent", e.Agent, "error", e.Error)
		}
	case inspect.EventLeaseBack:
		t.log.Info("an agent has its lease back", "agent", e.Agent, "after", after)
	case inspect.EventTakenOver:
		t.log.Info("an agent has moved", "agent", e.Agent, "machine", e.Machine, "from", e.FromMachine)
	case inspect.EventKeyAside:
		t.log.Warn("a key is set aside", "resource", e.Resource, "key", strings.TrimPrefix(e.Scope, "key="), "reason", e.Reason, "until", endText(e.Until))
	case inspect.EventAdvice:
		t.log.Warn("a setting is worth changing", "resource", e.Resource, "advice", e.Reason)
	case inspect.EventAnswer: // the first of its resource
		attrs := []any{"resource", e.Resource, "status", e.Status, "agent", e.Agent}
		if e.Model != "" {
			attrs = append(attrs, "model", e.Model)
		}
		if e.Reason != "" {
			attrs = append(attrs, "reason", e.Reason)
		}
		t.log.Warn(e.Resource+" rejected a request", append(attrs, "further", "not logged; sluice status says failing if most are")...)
	case inspect.EventUpstream:
		t.log.Debug("a request got no answer", "resource", e.Resource, "agent", e.Agent, "kind", e.Reason, "error", e.Error)
	}
}

// logFault logs a fault of the log that processes share.
func (t *teller) logFault(e *inspect.Event) {
	f, known := logFaults[e.Reason]
	if !known {
		return
	}
	attrs := []any{"resource", e.Resource, "position", e.Position}
	if e.Writer != "" {
		attrs = append(attrs, "process", e.Writer)
	}
	if e.Error != "" {
		attrs = append(attrs, "error", e.Error)
	}
	t.log.Warn(f.what, append(attrs, "sluice", f.does, "hint", f.hint)...)
}

// state logs a change of state: trouble and its end at a visible level, other changes for debugging.
func (t *teller) state(e *inspect.Event, after string) {
	if e.State == inspect.StateDegraded && t.lost[e.Resource] {
		t.unsaid[e.Resource] = true // reported once for all resources, and so is its end
		return
	}
	unsaid := t.unsaid[e.Resource]
	delete(t.unsaid, e.Resource)
	attrs := []any{"resource", e.Resource, "state", e.State, "was", e.Was, "reason", e.Reason}
	if e.Until != nil {
		attrs = append(attrs, "until", endText(e.Until))
	}
	switch {
	case e.State == inspect.StateFailing:
		t.log.Error(e.Resource+" is failing", attrs...)
	case e.State == inspect.StateDegraded, e.State == inspect.StatePaused:
		t.log.Warn(e.Resource+" is "+e.State, attrs...)
	case e.Was == inspect.StateFailing, e.Was == inspect.StateDegraded && !unsaid, e.Was == inspect.StatePaused:
		t.log.Info(e.Resource+" is no longer "+e.Was, append(attrs, "after", after)...)
	default:
		t.log.Debug(e.Resource+" is "+e.State, attrs...)
	}
}

func usd(micros int64) float64 { return float64(micros) / 1e6 }

func endText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
