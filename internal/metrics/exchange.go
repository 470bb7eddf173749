package metrics

import (
	"math"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sluicehttp"
)

// tookBuckets are the buckets for response times: large models take minutes.
var tookBuckets = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}

// missBuckets are the buckets for estimation errors, as fractions of the real use.
var missBuckets = []float64{0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}

const micro = 1e6 // of a dollar

// costs counts what requests used. Usage arrives as an event, whichever way the request was sent. If the proxy sent it
// and its response stated no usage, the exchange has the estimate.
type costs struct {
	tokens, cached, dollars, retryDollars *prometheus.CounterVec
}

func newCosts(m *maker) *costs {
	return &costs{
		tokens:  m.counter("tokens_total", "Tokens used, as the provider counts them against its limits.", "resource", "class", "kind"),
		cached:  m.counter("cache_tokens_total", "Tokens of proxied requests that were read from the provider's cache, or written to it.", "resource", "class", "operation"),
		dollars: m.counter("cost_dollars_total", "The cost of requests, by whether their usage was reported or estimated.", "resource", "class", "basis"),
		retryDollars: m.counter("retry_cost_dollars_total", "The part of the cost that went into retries.",
			"resource", "class"),
	}
}

// used counts reported usage.
func (c *costs) used(e *inspect.Event, resource, class string) {
	in, out := e.Units["input_tokens"], e.Units[sluice.OutputTokens]
	c.add(c.tokens, in, 1, resource, class, "input")
	c.add(c.tokens, out, 1, resource, class, "output")
	if in == 0 && out == 0 { // some report only the sum
		c.add(c.tokens, e.Units["tokens"], 1, resource, class, "any")
	}
	c.spend(e.Units[sluice.USD], e.Retry, resource, class, "usage")
}

func (c *costs) spend(micros int64, retry bool, resource, class, basis string) {
	c.add(c.dollars, micros, micro, resource, class, basis)
	if retry {
		c.add(c.retryDollars, micros, micro, resource, class)
	}
}

// add adds n/whole to a counter. It ignores negative numbers: callers may report anything, and a counter cannot fall.
func (c *costs) add(to *prometheus.CounterVec, n int64, whole float64, labels ...string) {
	if n > 0 {
		to.WithLabelValues(labels...).Add(float64(n) / whole)
	}
}

// exchanges counts the proxy's exchanges.
type exchanges struct {
	names *names
	costs *costs

	requests, aborted *prometheus.CounterVec
	took, miss        *prometheus.HistogramVec
}

func newExchanges(m *maker, n *names, c *costs) *exchanges {
	return &exchanges{
		names: n, costs: c,
		requests: m.counter("proxy_requests_total", "Requests that came to the proxy, by the status they got from the provider; none if it was not asked or did not answer.",
			"resource", "class", "code"),
		aborted: m.counter("proxy_aborted_total", "Requests whose client left before the end of the response.", "resource", "class"),
		took:    m.histogram("proxy_answer_seconds", "How long the last send of a proxied request and its answer took.", tookBuckets, "resource"),
		miss: m.histogram("estimate_output_error_ratio", "How far off the estimates of output tokens of proxied requests were: |estimate - actual| / actual.",
			missBuckets, "resource"),
	}
}

// Done counts a finished exchange of the proxy. It does not block.
func (r *Registry) Done(x sluicehttp.Exchange) { r.proxied.add(&x, r.gate.Load()) }

func (p *exchanges) add(x *sluicehttp.Exchange, gate *sluice.Gate) {
	resource, class := p.names.resources.label(x.Resource), unknown
	if x.Ticket != "" { // the gate knows its class; otherwise the client may have stated anything
		if class = x.Class; class == "" && gate != nil { // the client stated none: the agent's own
			class = gate.Class(x.Agent)
		}
		class = p.names.classes.label(class)
	}
	p.requests.WithLabelValues(resource, class, code(x.Status)).Inc()
	if x.Aborted {
		p.aborted.WithLabelValues(resource, class).Inc()
	}
	if x.Status != 0 {
		p.took.WithLabelValues(resource).Observe(x.Took.Seconds())
	}
	p.costs.add(p.costs.cached, x.Usage.CacheRead, 1, resource, class, "read")
	p.costs.add(p.costs.cached, x.Usage.CacheWrite+x.Usage.CacheLong, 1, resource, class, "write")
	if !told(x) {
		p.costs.spend(x.Micros, x.Retry, resource, class, "estimate")
	}
	if u := &x.Usage; u.Known && u.Final && u.Output > 0 && x.Estimated.Output > 0 {
		p.miss.WithLabelValues(resource).Observe(math.Abs(float64(x.Estimated.Output-u.Output)) / float64(u.Output))
	}
}

// told reports whether the ticket was settled with a usage, complete or as far as it was seen.
func told(x *sluicehttp.Exchange) bool {
	return x.Usage.Known || x.Usage.Input > 0 || x.Usage.Output > 0
}

// code returns the class of a status, such as 4xx. Single statuses would make too many series, and verdicts say more.
func code(status int) string {
	if status < 100 || status > 599 {
		return "none"
	}
	return strconv.Itoa(status/100) + "xx"
}
