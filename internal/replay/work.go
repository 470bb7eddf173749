package replay

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Assumptions are thresholds for interpreting a log. Zero fields select the defaults.
type Assumptions struct {
	// RetryWithin is how long after a refusal a request of the same caller and model can be its retry.
	RetryWithin time.Duration
	// Follow is the longest gap between the end of a call and its caller's next call that counts as waiting for it.
	Follow time.Duration
}

// The usual assumptions.
const (
	DefaultRetryWithin = 90 * time.Second
	DefaultFollow      = time.Second
	// atOnce is the longest gap after a success at which the next send is new work: it is shorter than any backoff.
	atOnce = 100 * time.Millisecond
)

// call is one piece of work: a request, and its retries after refusals.
type call struct {
	caller  int
	sends   []int // indices in the log
	wanted  time.Time
	end     time.Time
	done    bool // accepted by the provider
	follows int  // index of the call whose end it waited for; -1: none
	think   time.Duration
	// doubted is set for a call that could be a retry. It was taken as new, because its caller had just finished
	// another call. gap is the time in between.
	doubted bool
	gap     time.Duration
}

// refusals returns how many sends of a call were refused.
func (c *call) refusals() int {
	if c.done {
		return len(c.sends) - 1
	}
	return len(c.sends)
}

// work is all calls of a log's callers.
type work struct {
	callers []string // in the order of their first send
	calls   []call
	matched bool // retries were recognized by caller, model and time; false: the log marks them
}

// inProgress is the work in progress of a caller.
type inProgress struct {
	pending []int // calls whose last send was refused, oldest first
	ended   []int // finished calls without a later send, oldest first
}

// take adds a send to a call.
func (k *inProgress) take(calls []call, c, send int, s *Send) {
	one := &calls[c]
	one.sends = append(one.sends, send)
	one.end, one.done = s.End, !s.Refused
	if s.Refused {
		k.pending = append(k.pending, c)
		return
	}
	if k.ended = append(k.ended, c); len(k.ended) > maxEnded {
		k.ended = k.ended[1:] // it is too old for a caller to continue from
	}
}

// justEnded returns the index in ended of the call that ended last before at, if it ended just before. Otherwise it
// returns -1.
func (k *inProgress) justEnded(calls []call, at time.Time) int {
	best := -1
	for i, c := range k.ended {
		if d := at.Sub(calls[c].end); d >= 0 && d <= atOnce && (best < 0 || calls[c].end.After(calls[k.ended[best]].end)) {
			best = i
		}
	}
	return best
}

// maxEnded bounds how many finished calls are searched.
const maxEnded = 256

// couldBe reports whether s can be the retry of a call.
func (w *work) couldBe(l *Log, c int, s *Send) bool {
	last := &l.Sends[w.calls[c].sends[len(w.calls[c].sends)-1]]
	return last.Model == s.Model && !s.Start.Before(w.calls[c].end) && (s.Retry || last.Input == 0 || s.Input == 0 || last.Input == s.Input)
}

// same reports whether the log states the same input tokens for s as for the last send of the call.
func (w *work) same(l *Log, c int, s *Send) bool {
	last := &l.Sends[w.calls[c].sends[len(w.calls[c].sends)-1]]
	return s.Input > 0 && last.Input == s.Input
}

// pieces groups the sends into calls. If a log marks a caller's retries, pieces follows the marks. Otherwise it takes a
// send as the retry of the oldest refusal of the same caller and model that has no retry yet. If the caller has just
// finished another call, it takes the send as new work instead.
//
// Some callers rarely give up, but have refused calls left without a retry. Then pieces takes as many of their doubtful
// sends as retries: those with the longest gap after a finished call.
func pieces(l *Log, a Assumptions) *work {
	retries := map[int]bool{}
	w := join(l, a, retries)
	for range 4 {
		more := w.doubtful()
		if len(more) == 0 {
			break
		}
		for _, send := range more {
			retries[send] = true
		}
		w = join(l, a, retries)
	}
	w.follow(a.Follow)
	return w
}

// doubtful returns sends that are probably retries.
func (w *work) doubtful() (sends []int) {
	type caller struct {
		refused, gone int
		doubted       []int
	}
	all := make([]caller, len(w.callers))
	for i := range w.calls {
		c := &w.calls[i]
		who := &all[c.caller]
		if c.refusals() > 0 {
			who.refused++
		}
		if !c.done {
			who.gone++
		}
		if c.doubted {
			who.doubted = append(who.doubted, i)
		}
	}
	for _, who := range all {
		if 2*who.gone > who.refused { // it gives up
			continue
		}
		slices.SortStableFunc(who.doubted, func(a, b int) int { return cmp.Compare(w.calls[b].gap, w.calls[a].gap) })
		for _, c := range who.doubted[:min(who.gone, len(who.doubted))] {
			sends = append(sends, w.calls[c].sends[0])
		}
	}
	return sends
}

// join groups the sends like pieces, with sends that are known to be retries.
func join(l *Log, a Assumptions, retries map[int]bool) *work {
	w := &work{}
	index := map[string]int{}
	states := map[string]bool{} // callers whose retries the log marks
	for i := range l.Sends {
		if s := &l.Sends[i]; s.Retry {
			states[s.Caller] = true
		}
	}
	byCaller := map[string]*inProgress{}
	for i := range l.Sends {
		s := &l.Sends[i]
		if _, known := index[s.Caller]; !known {
			index[s.Caller] = len(w.callers)
			w.callers = append(w.callers, s.Caller)
			byCaller[s.Caller] = &inProgress{}
		}
		k := byCaller[s.Caller]
		k.pending = slices.DeleteFunc(k.pending, func(c int) bool { return s.Start.Sub(w.calls[c].end) > a.RetryWithin })
		free := k.justEnded(w.calls, s.Start)
		again := -1
		if !states[s.Caller] || s.Retry {
			again = slices.IndexFunc(k.pending, func(c int) bool { return w.couldBe(l, c, s) })
		}
		doubted, gap := again >= 0 && !s.Retry && !retries[i] && free >= 0 && !w.same(l, k.pending[again], s), time.Duration(0)
		if doubted {
			again = -1
		}
		if again < 0 {
			if free >= 0 {
				gap = s.Start.Sub(w.calls[k.ended[free]].end)
				k.ended = slices.Delete(k.ended, free, free+1)
			}
			w.calls = append(w.calls, call{caller: index[s.Caller], wanted: s.Wanted, follows: -1, doubted: doubted, gap: gap})
			k.take(w.calls, len(w.calls)-1, i, s)
			continue
		}
		c := k.pending[again]
		k.pending = slices.Delete(k.pending, again, again+1)
		w.matched = w.matched || !s.Retry
		k.take(w.calls, c, i, s)
	}
	return w
}

// follow finds the calls that waited for the end of another call of the same caller.
func (w *work) follow(within time.Duration) {
	byWanted := make([]int, len(w.calls))
	for i := range byWanted {
		byWanted[i] = i
	}
	byEnd := slices.Clone(byWanted)
	slices.SortStableFunc(byWanted, func(a, b int) int { return w.calls[a].wanted.Compare(w.calls[b].wanted) })
	slices.SortStableFunc(byEnd, func(a, b int) int { return w.calls[a].end.Compare(w.calls[b].end) })
	free := make([][]int, len(w.callers)) // finished calls that no call follows, in the order of their ends
	next := 0
	for _, i := range byWanted {
		c := &w.calls[i]
		for next < len(byEnd) && !w.calls[byEnd[next]].end.After(c.wanted) {
			over := byEnd[next]
			free[w.calls[over].caller] = append(free[w.calls[over].caller], over)
			next++
		}
		mine := free[c.caller]
		// A call without a duration ends when it is wanted. It does not wait for itself.
		for n := len(mine) - 1; n >= 0; n-- {
			gap := c.wanted.Sub(w.calls[mine[n]].end)
			if gap > within || within == 0 {
				break
			}
			if from := mine[n]; from != i && !w.waitsFor(from, i) {
				c.follows, c.think = from, gap
				free[c.caller] = slices.Delete(mine, n, n+1)
				break
			}
		}
	}
}

// waitsFor reports whether call a waits for call b, directly or through others that begin and end at the same time.
func (w *work) waitsFor(a, b int) bool {
	for n := 0; a >= 0 && n < maxEnded; n++ {
		if a == b {
			return true
		}
		if w.calls[a].wanted.Before(w.calls[b].wanted) {
			return false
		}
		a = w.calls[a].follows
	}
	return a >= 0
}

// atOnce returns the most calls that each caller had in progress at once.
func (r *Replay) atOnce() []int {
	type edge struct {
		at time.Time
		by int
	}
	edges := make([][]edge, len(r.work.callers))
	for i := range r.work.calls {
		c := &r.work.calls[i]
		edges[c.caller] = append(edges[c.caller], edge{c.wanted, 1}, edge{c.end, -1})
	}
	all := make([]int, len(edges))
	for i := range edges {
		slices.SortStableFunc(edges[i], func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
		now := 0
		all[i] = 1
		for _, e := range edges[i] {
			now += e.by
			all[i] = max(all[i], now)
		}
	}
	return all
}
