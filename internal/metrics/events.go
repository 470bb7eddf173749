package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/upstream"
)

// waitBuckets are the buckets for waits: most are short, and hardly any is much longer than ten minutes.
var waitBuckets = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}

// happenings counts events.
type happenings struct {
	names   *names
	costs   *costs
	tickets tickets

	sends, retries, cancels, held, answers, throttled, refused, wouldWait *prometheus.CounterVec
	pauses, resumes, budgets, leasesLost                                  *prometheus.CounterVec
	outages, outageSeconds, outageSends, upstream                         *prometheus.CounterVec
	waits                                                                 *prometheus.HistogramVec
}

func newHappenings(m *maker, n *names, c *costs) *happenings {
	h := &happenings{
		names: n, costs: c,
		sends:         m.counter("sends_total", "Requests that this process let through.", "resource", "class"),
		retries:       m.counter("retries_total", "Retries let through: requests whose earlier send had failed.", "resource", "class"),
		cancels:       m.counter("cancels_total", "Requests let through that were given back unsent.", "resource", "class"),
		waits:         m.histogram("wait_seconds", "How long requests were held before they were let through, refused for the time, or given up by their callers.", waitBuckets, "resource", "class"),
		held:          m.counter("held_total", "Requests that had to wait before they were let through, by reason.", "resource", "class", "reason", "limit"),
		answers:       m.counter("answers_total", "Answers of the provider, by what they mean for the quota.", "resource", "class", "verdict"),
		throttled:     m.counter("throttled_total", "Answers that refused a request because of a limit or quota.", "resource", "class"),
		refused:       m.counter("refused_total", "Requests that were not let through, by reason.", "resource", "class", "reason", "limit"),
		wouldWait:     m.counter("would_wait_total", "Requests let through in the mode observe that would have been held or refused, by reason.", "resource", "class", "reason", "limit"),
		pauses:        m.counter("pauses_total", "Pauses that began, by cause: the provider, or a person.", "resource", "by"),
		resumes:       m.counter("resumes_total", "Pauses that were ended by hand.", "resource"),
		budgets:       m.counter("budget_exhausted_total", "How often an account of a budget was found used up.", "budget"),
		leasesLost:    m.counter("leases_lost_total", "Heartbeats of agents of this process that were refused or got no answer."),
		upstream:      m.counter("upstream_errors_total", "Sends that did not reach the provider or got no answer, and answers 5xx, by kind.", "resource", "kind"),
		outages:       m.counter("store_outages_total", "How often this process lost the store.", "resource"),
		outageSeconds: m.counter("store_outage_seconds_total", "How long the store was unreachable, counted when it is back.", "resource"),
		outageSends:   m.counter("store_outage_sends_total", "Requests let through without the store, counted when it is back.", "resource"),
	}
	h.leasesLost.WithLabelValues() // report 0 from the start
	return h
}

// add counts one event.
func (h *happenings) add(e *inspect.Event) {
	again := false
	switch e.Kind {
	case inspect.EventSend:
		h.tickets.note(e)
	case inspect.EventAnswer, inspect.EventThrottled, inspect.EventCancel:
		h.tickets.fill(e, false)
	case inspect.EventUsage:
		again = h.tickets.fill(e, true)
	}
	resource, class := h.names.resources.label(e.Resource), h.class(e)
	switch e.Kind {
	case inspect.EventSend:
		h.send(e, resource, class)
	case inspect.EventCancel:
		h.cancels.WithLabelValues(resource, class).Inc()
	case inspect.EventUpstream:
		h.upstream.WithLabelValues(resource, failureKind(e.Reason)).Inc()
	case inspect.EventAnswer:
		if e.Status >= 500 {
			h.upstream.WithLabelValues(resource, upstream.Status).Inc()
		}
		h.answers.WithLabelValues(resource, class, h.names.verdicts.label(verdict(e.Verdict))).Inc()
		if e.Ticket == "" { // otherwise a usage event follows, if there is any usage
			h.costs.used(e, resource, class)
		}
	case inspect.EventUsage:
		if !again {
			h.costs.used(e, resource, class)
		}
	case inspect.EventThrottled:
		h.throttled.WithLabelValues(resource, class).Inc()
	case inspect.EventPause:
		by := "provider"
		if e.Verdict == "" {
			by = "hand"
		}
		h.pauses.WithLabelValues(resource, by).Inc()
	case inspect.EventResume:
		h.resumes.WithLabelValues(resource).Inc()
	case inspect.EventRefused:
		h.refused.WithLabelValues(resource, class, h.names.reasons.label(e.Reason), h.limit(e)).Inc()
		if e.WaitedMS > 0 {
			h.waits.WithLabelValues(resource, class).Observe(seconds(e.WaitedMS))
		}
	case inspect.EventAbandoned:
		h.waits.WithLabelValues(resource, class).Observe(seconds(e.WaitedMS))
	case inspect.EventWouldWait:
		h.wouldWait.WithLabelValues(resource, class, h.names.reasons.label(e.Reason), h.limit(e)).Inc()
	case inspect.EventLeaseLost:
		h.leasesLost.WithLabelValues().Inc()
	case inspect.EventBudget:
		h.budgets.WithLabelValues(h.names.budgets.label(e.Limit)).Inc()
	case inspect.EventStoreLost:
		h.outages.WithLabelValues(resource).Inc()
	case inspect.EventStoreBack:
		h.outageSeconds.WithLabelValues(resource).Add(seconds(e.ForMS))
		h.outageSends.WithLabelValues(resource).Add(float64(max(e.Count, 0)))
	}
}

func (h *happenings) send(e *inspect.Event, resource, class string) {
	h.sends.WithLabelValues(resource, class).Inc()
	h.throttled.WithLabelValues(resource, class) // report 0 from the start: Prometheus does not see a rise from no series
	for _, kind := range upstream.Kinds() {
		h.upstream.WithLabelValues(resource, kind)
	}
	h.waits.WithLabelValues(resource, class).Observe(seconds(e.WaitedMS))
	if e.Retry {
		h.retries.WithLabelValues(resource, class).Inc()
	}
	if e.Reason != "" {
		h.held.WithLabelValues(resource, class, h.names.reasons.label(e.Reason), h.limit(e)).Inc()
	}
}

// class returns the class of the request. For a response without a ticket the class is unverified, so it is unknown.
func (h *happenings) class(e *inspect.Event) string {
	if e.Class == "" || e.Observed && e.Kind == inspect.EventAnswer && e.Ticket == "" {
		return unknown
	}
	return h.names.classes.label(e.Class)
}

// limit returns the limit that held the request, or "".
func (h *happenings) limit(e *inspect.Event) string {
	if e.Reason == "budget" {
		return h.names.budgets.optional(e.Limit)
	}
	return h.names.limits.optional(e.Limit)
}

// failureKind returns kind if it is a known kind of failure, because events may come from elsewhere.
func failureKind(kind string) string {
	if slices.Contains(upstream.Kinds(), kind) {
		return kind
	}
	return upstream.Other
}

func verdict(s string) string { return strings.ReplaceAll(s, " ", "_") }

func seconds(ms int64) float64 { return (time.Duration(max(ms, 0)) * time.Millisecond).Seconds() }
