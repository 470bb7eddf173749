package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	resource = "soak"
	machine  = "soak" // machine name of all agents that send heartbeats
	// late is how long after its end a phase may run if the daemon cannot keep up.
	late = time.Minute
)

// phase is a period of load: tickets and heartbeats, each at a steady rate.
type phase struct {
	agents  int
	prefix  string // of the agents' names
	tickets int    // total
	beats   int    // total
	length  time.Duration

	begun                          time.Time
	acquire, answer, closed, beat  hist
	third                          [3]hist // acquire, by the third of the phase in which the call was due
	asked, granted, ended, renewed atomic.Int64
	nextTicket, nextBeat           atomic.Int64

	mu     sync.Mutex
	errors map[string]int64
	went   []int64 // when tickets were used, in microseconds since the phase began
}

// run makes all calls of the phase. It gives up if they take much too long.
func (p *phase) run(ctx context.Context, address string, conns int) error {
	p.errors, p.went = map[string]int64{}, make([]int64, 0, p.tickets)
	p.begun = time.Now()
	ctx, cancel := context.WithDeadline(ctx, p.begun.Add(p.length+late))
	defer cancel()
	beating := max(conns/2, 1) // heartbeats need many connections, because one may have to wait for a shared read
	var all sync.WaitGroup
	for i := range conns {
		all.Go(func() {
			w := &wire{address: address}
			defer w.close()
			if i < beating {
				each(ctx, p, &p.nextBeat, p.beats, func(n int, due time.Time) { p.heartbeat(ctx, w, n, due) })
				return
			}
			each(ctx, p, &p.nextTicket, p.tickets, func(n int, due time.Time) { p.ticket(ctx, w, n, due) })
		})
	}
	all.Wait()
	if ctx.Err() != nil && time.Since(p.begun) < p.length+late {
		return ctx.Err() // interrupted
	}
	slices.Sort(p.went)
	return nil
}

// each calls do for each of n calls when it is due, or at once if it is late. Several goroutines share next.
func each(ctx context.Context, p *phase, next *atomic.Int64, n int, do func(i int, due time.Time)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		i := int(next.Add(1)) - 1
		if i >= n {
			return
		}
		due := p.begun.Add(time.Duration(float64(p.length) * float64(i) / float64(n)))
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
		do(i, due)
	}
}

// agent returns the name and class of agent i. One in ten has the highest class, three in ten the middle one.
func (p *phase) agent(i int) (name, class string) {
	i %= p.agents
	return fmt.Sprintf("%s-%d", p.prefix, i), [10]string{"p0", "p1", "p1", "p1", "p2", "p2", "p2", "p2", "p2", "p2"}[i%10]
}

// ticket acquires, answers and closes one ticket.
func (p *phase) ticket(ctx context.Context, w *wire, n int, due time.Time) {
	// The factor spreads consecutive tickets over agents with distant names.
	agent, class := p.agent(n * 7)
	body := fmt.Appendf(nil, `{"resource":%q,"agent":%q,"class":%q,"wait_ms":20000}`, resource, agent, class)
	var got struct {
		Ticket string `json:"ticket"`
	}
	p.asked.Add(1)
	if err := w.call(ctx, "POST", "/v1/tickets", body, &got); err != nil {
		p.failed(ctx, "acquire", err)
		return
	}
	now := time.Now()
	p.acquire.add(now.Sub(due))
	p.third[n*3/p.tickets].add(now.Sub(due))
	p.granted.Add(1)
	at := now.Sub(p.begun).Microseconds() // a request would be sent now and answered at once
	if err := w.call(ctx, "POST", "/v1/tickets/"+got.Ticket+"/answer", []byte(`{"status":200,"headers":{}}`), nil); err != nil {
		p.failed(ctx, "answer", err)
	} else {
		p.answer.add(time.Since(now))
	}
	p.mu.Lock()
	p.went = append(p.went, at)
	p.mu.Unlock()
	now = time.Now()
	if err := w.call(ctx, "POST", "/v1/tickets/"+got.Ticket+"/close", []byte(`{"usage":{"requests":1}}`), nil); err != nil {
		p.failed(ctx, "close", err)
		return
	}
	p.closed.add(time.Since(now))
	p.ended.Add(1)
}

func (p *phase) heartbeat(ctx context.Context, w *wire, n int, due time.Time) {
	agent, class := p.agent(n)
	body := fmt.Appendf(nil, `{"class":%q,"machine":%q,"resources":[%q]}`, class, machine, resource)
	if err := w.call(ctx, "PUT", "/v1/agents/"+agent, body, nil); err != nil {
		p.failed(ctx, "heartbeat", err)
		return
	}
	p.beat.add(time.Since(due))
	p.renewed.Add(1)
}

// failed counts an error by its text.
func (p *phase) failed(ctx context.Context, call string, err error) {
	if ctx.Err() != nil {
		err = cmp.Or(context.Cause(ctx), err)
	}
	p.mu.Lock()
	p.errors[call+": "+err.Error()]++
	p.mu.Unlock()
}

// most returns the largest number of times within any span of this length. times is sorted.
func most(times []int64, length time.Duration) int {
	largest, first := 0, 0
	for i, t := range times {
		for times[first] <= t-length.Microseconds() {
			first++
		}
		largest = max(largest, i-first+1)
	}
	return largest
}
