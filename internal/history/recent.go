package history

import (
	"cmp"
	"slices"
	"time"
)

// States of a request.
const (
	Running   = "running"
	Done      = "done"
	Throttled = "throttled"
	Failed    = "failed"
	Unsent    = "unsent" // given back
	Left      = "left"   // its client left before the response was complete
)

// Request is one of the last requests: names, numbers and times. It has nothing from the request or response body.
type Request struct {
	Time     time.Time `json:"time"`
	Resource string    `json:"resource"`
	Agent    string    `json:"agent"`
	Class    string    `json:"class"`
	Model    string    `json:"model"`
	WaitedMS int64     `json:"waited_ms"`
	TookMS   int64     `json:"took_ms"`
	Status   int       `json:"status"`
	Verdict  string    `json:"verdict"`
	State    string    `json:"state"`
	Retry    bool      `json:"retry"`
	Input    int64     `json:"input_tokens"`
	Output   int64     `json:"output_tokens"`
	USD      *float64  `json:"usd"`
	// Guessed is set if the dollars are an estimate: the price of the model is unknown, or no usage was stated.
	Guessed bool  `json:"guessed"`
	Micros  int64 `json:"-"`
}

// keptRequests is how many requests are kept.
const keptRequests = 512

// recent is a ring of the last requests.
type recent struct {
	ring []Request
	next uint64 // number of the next request
}

// begin adds a request and returns its number.
func (r *recent) begin(q Request) uint64 {
	if len(r.ring) < keptRequests {
		r.ring = append(r.ring, q)
	} else {
		r.ring[r.next%keptRequests] = q
	}
	r.next++
	return r.next - 1
}

// change changes a request if it is still kept.
func (r *recent) change(n uint64, f func(*Request)) {
	if n < r.next && r.next-n <= keptRequests {
		f(&r.ring[n%keptRequests])
	}
}

// lastOf changes the newest request of an agent without a response, if it is among the last 64.
func (r *recent) lastOf(w who, f func(*Request)) {
	for i := range uint64(min(len(r.ring), 64)) {
		q := &r.ring[(r.next-1-i)%keptRequests]
		if q.Resource == w.resource && q.Agent == w.agent && q.Status == 0 && (q.State == Running || q.State == Unsent) {
			f(q)
			return
		}
	}
}

// list returns the last requests, newest first.
func (r *recent) list(most int) []Request {
	n := min(len(r.ring), most)
	list := make([]Request, 0, n)
	for i := range uint64(n) {
		q := r.ring[(r.next-1-i)%keptRequests]
		if q.Micros > 0 {
			usd := float64(q.Micros) / 1e6
			q.USD = &usd
		}
		list = append(list, q)
	}
	return list
}

// LastMinute has the counts of the last sixty seconds.
type LastMinute struct {
	Name      string `json:"name"`
	Sends     int64  `json:"sends"`
	Throttled int64  `json:"throttled"`
	Errors    int64  `json:"errors"`
}

// Now is the current activity: the last requests, and the last minute.
type Now struct {
	Time      time.Time    `json:"time"`
	Requests  []Request    `json:"requests"`
	Resources []LastMinute `json:"resources"`
	Agents    []LastMinute `json:"agents"`
}

// Now returns the current activity, with at most so many requests.
func (b *Book) Now(requests int) Now {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	n := Now{Time: now.UTC(), Requests: b.recent.list(requests), Resources: b.live.list(ofResource, now), Agents: b.live.list(ofAgent, now)}
	return n
}

func (l *live) list(kind int, now time.Time) []LastMinute {
	list := []LastMinute{}
	for name, m := range l.all[kind] {
		one := LastMinute{name, m.sends.count(now), m.throttled.count(now), m.errors.count(now)}
		if one.Sends+one.Throttled+one.Errors > 0 {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b LastMinute) int { return cmp.Or(cmp.Compare(b.Sends, a.Sends), cmp.Compare(a.Name, b.Name)) })
	return list
}
