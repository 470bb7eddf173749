package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
)

const (
	// tellPastEvery is how often an event tells of connections to one host.
	tellPastEvery = 5 * time.Second
	// watchedEvery is how often an event tells that calls are watched.
	watchedEvery = 30 * time.Minute
)

// pastGate counts which calls of a command passed the gate, and which connections went past it.
type pastGate struct {
	aside func(resource string) bool // connections to this resource are not calls, if others are
	tell  func(inspect.Event)

	mu      sync.Mutex
	through map[string]bool // resources to which calls passed
	past    map[passage]*passing
	within  bool        // a nested run counts
	timer   *time.Timer // nil if nothing was told lately
	over    bool
	marked  time.Time // when an event last told that calls are watched
}

// passage is where a connection went.
type passage struct{ resource, host string }

// passing counts connections.
type passing struct{ all, untold int64 }

func newPastGate(aside func(string) bool, tell func(inspect.Event)) *pastGate {
	return &pastGate{aside: aside, tell: tell, through: map[string]bool{}, past: map[passage]*passing{}}
}

// passed counts a call that passed the gate.
func (p *pastGate) passed(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.through[resource] = true
	if now := time.Now(); now.Sub(p.marked) >= watchedEvery {
		p.marked = now
		p.tell(inspect.Event{Time: now.UTC(), Kind: inspect.EventPastGate})
	}
}

// nested notes that a nested run counts its own connections.
func (p *pastGate) nested() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.within = true
}

// add counts a connection that went past the gate.
func (p *pastGate) add(resource, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := passage{resource, host}
	if p.past[at] == nil {
		p.past[at] = &passing{}
	}
	p.past[at].all++
	p.past[at].untold++
	if p.timer == nil && !p.over {
		p.flush()
	}
}

// flush tells of connections that were not told yet. While there are any, it calls itself. The caller holds the lock.
func (p *pastGate) flush() {
	p.timer = nil
	for at, n := range p.past {
		if n.untold == 0 || p.aside(at.resource) && (!p.over || p.through[at.resource]) {
			continue // at the end it is known whether these were calls
		}
		p.tell(inspect.Event{Time: time.Now().UTC(), Kind: inspect.EventPastGate, Resource: at.resource, Host: at.host, Count: n.untold})
		n.untold = 0
		if p.timer == nil && !p.over {
			p.timer = time.AfterFunc(tellPastEvery, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				if !p.over {
					p.flush()
				}
			})
		}
	}
}

// close tells of the last connections.
func (p *pastGate) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
	p.over = true
	p.flush()
}

// summary says in one line what went past the gate or, if nothing passed it, that. It returns "" if all is well. hint is
// what gates such connections. A command that took a turn may pass nothing.
func (p *pastGate) summary(hint string, turn bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[string]int64{}
	for at, n := range p.past {
		if !p.aside(at.resource) || !p.through[at.resource] {
			counts[at.host] += n.all
		}
	}
	switch {
	case len(counts) > 0:
		return pastText(counts) + " went past the gate: " + hint
	case turn || len(p.through) > 0 || p.within || len(outerDecrypts()) > 0: // else an enclosing run knows
		return ""
	}
	return "no call passed the gate; if the command makes calls, --resource NAME makes it take a turn instead"
}

// pastText lists connections, the most first: "12 connections to api.openai.com and 1 to api.anthropic.com".
func pastText(counts map[string]int64) string {
	hosts := make([]string, 0, len(counts))
	for host := range counts {
		hosts = append(hosts, host)
	}
	slices.SortFunc(hosts, func(a, b string) int {
		if counts[a] != counts[b] {
			return int(counts[b] - counts[a])
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, host := range hosts[:min(len(hosts), fewHosts)] {
		what := ""
		if len(parts) == 0 {
			what = "connection "
			if counts[host] != 1 {
				what = "connections "
			}
		}
		parts = append(parts, fmt.Sprintf("%d %sto %s", counts[host], what, harmless(host)))
	}
	if more := len(hosts) - fewHosts; more > 0 {
		var rest int64
		for _, host := range hosts[fewHosts:] {
			rest += counts[host]
		}
		parts = append(parts, fmt.Sprintf("%d to %d other hosts", rest, more))
	}
	return inWords(parts, "and")
}

// inWords joins a list as in a sentence.
func inWords(list []string, last string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " " + last + " " + list[len(list)-1]
}

// addPast adds to a status what this machine's event log knows of connections past the gate. On an error status goes on
// without them.
func (s *session) addPast(st *inspect.Status) {
	past, err := eventlog.Past(s.dir, time.Now().Add(-time.Hour), s.ours()...)
	if err != nil {
		s.warnOfLog(err)
	}
	past.AddTo(st)
}

// pastFor is how long a daemon shows connections past the gate before it reads the event log again.
const pastFor = 5 * time.Second

// pastReader returns a function like addPast that reads the log now and then only.
func (s *session) pastReader() func(*inspect.Status) {
	var mu sync.Mutex
	var next time.Time
	var past inspect.Past
	return func(st *inspect.Status) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.After(next) {
			var err error
			if past, err = eventlog.Past(s.dir, now.Add(-time.Hour), s.ours()...); err != nil {
				s.warnOfLog(err)
			}
			next = now.Add(pastFor)
		}
		past.AddTo(st)
	}
}

// pastAdvice adds what to do about connections past the gate to a diagnosis.
func (s *session) pastAdvice(d *inspect.Diagnosis, since time.Time) {
	past, err := eventlog.Past(s.dir, since, s.ours()...)
	if err != nil {
		s.warnOfLog(err)
	}
	for i := range d.Resources {
		r := &d.Resources[i]
		if hosts := past.Of[inspect.ResourceOf(r.Name)]; len(hosts) > 0 {
			r.Advice = append(r.Advice, inspect.Advice{
				Setting: "sluice run --intercept",
				Text: pastText(hosts) + " went past the gate, from commands under sluice run: they ignore the base URL, or do not trust the gate's certificate. " +
					"sluice run --intercept -- COMMAND gates them; docs/intercept.md says what programs need for it.",
			})
		}
	}
}
