package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/estimate"
)

// readBuckets are the buckets for reads of the state: from memory to a slow store far away.
var readBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

// agentStates lists the states of an agent.
var agentStates = [...]string{"active", "waiting", "limited", "held"}

// gatePhases lists the phases of a pause, except open.
var gatePhases = [...]string{"paused", "probing", "ramping"}

// state is the collector that reads the state for each scrape.
type state struct {
	reader    *reader
	estimates func() estimate.Miss
	all       []*prometheus.Desc

	// Of the store. They are collected with the state, so that a scrape shows its own read.
	reads    prometheus.Histogram
	failures prometheus.Counter
	up       *prometheus.Desc
	outage   *prometheus.Desc
	members  *prometheus.Desc
	silent   *prometheus.Desc
	log      logDescs

	// Of resources.
	state, light, observe, waiting, inFlight, paused, pausedUntil, gates, inARow, lastWeek, lastThrottled *prometheus.Desc
	poolSends, poolRetries, poolThrottled, poolWaited                                                     *prometheus.Desc

	limits  limitDescs
	budgets budgetDescs

	// Of agents.
	agents, leases, cycles *prometheus.Desc

	missed, calls *prometheus.Desc
}

func newState(m *maker, r *reader, estimates func() estimate.Miss) *state {
	s := &state{reader: r, estimates: estimates}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := m.desc(name, help, labels...)
		s.all = append(s.all, d)
		return d
	}
	s.reads = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: m.note("store_read_seconds", nil, true), Help: "How long the store took to tell the state of all resources.", Buckets: readBuckets,
	})
	s.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: m.note("store_read_failures_total", nil, false), Help: "Reads of the state that failed or took too long.",
	})
	s.up = desc("store_up", "Whether the store can be reached: 1, or 0 if all or part of the state could not be read.")
	s.outage = desc("store_outage", "Whether this process continues without the store for a resource: 1 or 0.", "resource")
	s.members = desc("store_members", "Processes with a share to continue with when the store cannot be reached.", "resource")
	s.silent = desc("store_members_silent", "Processes with such a share that have not reported for seconds.", "resource")

	s.log.init(desc)

	s.state = desc("resource_state", "The state of a resource: 1 for the one that it is in, 0 for the others.", "resource", "state")
	s.light = desc("light", "The traffic light: 0 green, 1 amber, 2 red.", "resource")
	s.observe = desc("observing", "Whether the resource is only observed and holds no request (mode observe): 1 or 0.", "resource")
	s.waiting = desc("waiting_requests", "Requests in the queue.", "resource", "class")
	s.inFlight = desc("in_flight_requests", "Requests that were let through and still run.", "resource")
	s.paused = desc("paused", "Whether a pause holds all requests: 1 or 0.", "resource")
	s.pausedUntil = desc("paused_until_timestamp_seconds", "When the pause ends; absent without one.", "resource")
	s.gates = desc("gates", "Pauses, probes and ramps in force, on a resource or a part of it.", "resource", "phase")
	s.inARow = desc("throttled_in_a_row", "Consecutive refusals that led to the current pause.", "resource")
	s.lastWeek = desc("throttled_last_week", "Refusals in the last seven days, of all processes.", "resource")
	s.lastThrottled = desc("last_throttled_timestamp_seconds", "When the last refusal was; absent without one.", "resource")
	s.poolSends = desc("pool_sends_total", "Requests let through by all processes that share the store.", "resource")
	s.poolRetries = desc("pool_retries_total", "Retries let through by all processes that share the store.", "resource")
	s.poolThrottled = desc("pool_throttled_total", "Refusals reported by all processes that share the store.", "resource")
	s.poolWaited = desc("pool_wait_seconds_total", "How long requests of all processes that share the store were held.", "resource")
	s.limits.init(desc)
	s.budgets.init(desc)
	s.agents = desc("agents", "Agents that are alive: they hold a lease, or have asked within the length of one.", "class", "state")
	s.leases = desc("leases", "Agents that hold a lease, kept alive by heartbeats.", "class")
	s.cycles = desc("cycles", "Circles of agents that wait for each other.")
	s.missed = desc("estimate_error_ratio", "How far off the recent estimates of tokens were: the mean of |estimate - actual| / actual.", "kind")
	s.calls = desc("estimate_calls_total", "Calls that estimates were learned from.")
	return s
}

// Describe implements prometheus.Collector.
func (s *state) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.all {
		ch <- d
	}
	s.reads.Describe(ch)
	s.failures.Describe(ch)
}

// Collect implements prometheus.Collector. It leaves out what cannot be read, because old numbers would look like new
// ones.
func (s *state) Collect(ch chan<- prometheus.Metric) {
	out := &teller{ch: ch}
	x, first, err := s.reader.read()
	if first {
		s.count(x, err)
	}
	up := 0.0
	if x != nil && (err == nil || len(x.status.Resources) > 0) { // some of it may have been read before the failure
		up = s.tell(out, &x.status)
	}
	if err != nil {
		up = 0
	}
	out.gauge(s.up, up)
	if s.estimates != nil {
		miss := s.estimates()
		out.gauge(s.missed, miss.Input, "input")
		out.gauge(s.missed, miss.Output, "output")
		out.counter(s.calls, float64(miss.Calls))
	}
	s.reads.Collect(ch)
	s.failures.Collect(ch)
}

// count counts a read, and how long it took so far if it did not end within the timeout.
func (s *state) count(x *reading, err error) {
	if err != nil {
		s.failures.Inc()
	}
	s.reads.Observe(x.took.Seconds())
}

// tell reports a whole state, and returns 1 if the store can be reached, else 0.
func (s *state) tell(out *teller, st *inspect.Status) (up float64) {
	up = 1
	classes := map[string]bool{}
	seen := map[string]bool{}
	for i := range st.Resources {
		r := &st.Resources[i]
		name := clean(r.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, state := range inspect.States() {
			out.gauge(s.state, truth(r.State == state), name, state)
		}
		out.gauge(s.outage, truth(r.Outage != nil), name)
		out.gauge(s.observe, truth(r.Mode == "observe"), name)
		s.log.tell(out, name, r.Log)
		if r.Outage != nil { // nothing else is known
			up = 0
			continue
		}
		for class := range r.Waiting {
			classes[clean(class)] = true
		}
		s.resource(out, name, r)
	}
	s.fleet(out, st, classes)
	s.budgets.tell(out, st.Budgets)
	return up
}

func (s *state) resource(out *teller, name string, r *inspect.ResourceStatus) {
	out.gauge(s.light, light(r.Light), name)
	waiting := map[string]int{}
	for class, n := range r.Waiting {
		waiting[clean(class)] += n
	}
	for class, n := range waiting {
		out.gauge(s.waiting, float64(n), name, class)
	}
	out.gauge(s.inFlight, float64(r.InFlight), name)
	out.gauge(s.paused, truth(r.PausedUntil != nil), name)
	out.moment(s.pausedUntil, r.PausedUntil, name)
	for _, phase := range gatePhases {
		n := 0
		for i := range r.Gates {
			if r.Gates[i].Phase == phase {
				n++
			}
		}
		out.gauge(s.gates, float64(n), name, phase)
	}
	out.gauge(s.inARow, float64(r.Consecutive429), name)
	out.gauge(s.lastWeek, float64(r.Throttled7d), name)
	out.moment(s.lastThrottled, r.Last429, name)
	out.counter(s.poolSends, float64(r.Sent), name)
	out.counter(s.poolRetries, float64(r.Retried), name)
	out.counter(s.poolThrottled, float64(r.Throttled), name)
	out.counter(s.poolWaited, seconds(r.WaitedMS), name)
	out.gauge(s.members, float64(r.Members), name)
	out.gauge(s.silent, float64(r.SilentMembers), name)
	s.limits.tell(out, name, r.Limits)
}

// fleet reports the number of agents. It includes classes without agents, so that a line in a chart ends at 0.
func (s *state) fleet(out *teller, st *inspect.Status, classes map[string]bool) {
	type key struct{ class, state string }
	count, leases := map[key]int{}, map[string]int{}
	for i := range st.Agents {
		a := &st.Agents[i]
		class := clean(a.Class)
		classes[class] = true
		count[key{class, a.State}]++
		if a.Leased {
			leases[class]++
		}
	}
	for class := range classes {
		out.gauge(s.leases, float64(leases[class]), class)
		for _, state := range agentStates {
			out.gauge(s.agents, float64(count[key{class, state}]), class, state)
		}
	}
	out.gauge(s.cycles, float64(len(st.Cycles)))
}

// teller sends metrics to a channel.
type teller struct{ ch chan<- prometheus.Metric }

func (t *teller) gauge(d *prometheus.Desc, v float64, labels ...string) {
	t.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (t *teller) counter(d *prometheus.Desc, v float64, labels ...string) {
	t.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

// moment reports a time, if there is one.
func (t *teller) moment(d *prometheus.Desc, at *time.Time, labels ...string) {
	if at != nil {
		t.gauge(d, float64(at.UnixMilli())/1000, labels...)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func light(s string) float64 {
	switch s {
	case "red":
		return 2
	case "amber":
		return 1
	}
	return 0
}
