package meter

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
)

// request is what the provider sees of a charge.
type request struct {
	Charge
	counts           int64 // what the provider counts
	granted, arrives int64
	due              int64 // end of its ticket's time to live
	long             bool  // may take longer than the slack, and is answered or lapses
	ended, refunded  bool
	settled          bool
}

// wire is a meter, the requests that it lets go, and a provider that counts exactly. Requests
// arrive at any time between their grant and what the guard takes for their bound. The meter
// knows a fixed window's true reset only by statements that are rounded, late, and
// sometimes from before the last reset.
type wire struct {
	*tape.Tape
	d          Def
	m          Meter
	r          *Ring
	now        int64
	size       int64
	reset      int64
	busy       bool // a bucket that seldom runs empty
	sent, open []*request
}

func newWire(t *tape.Tape) *wire {
	kind := tape.Of(t, "kind", Bucket, Bucket, Rolling, Fixed, Fixed)
	guard := tape.Of(t, "guard", Auto, Strict)
	window := tape.Of(t, "window", second, 20_000, 3*second, 5*second, 7_777_777, 10*second, minute, hour)
	slack := tape.Of(t, "slack", 0, 1000, second/2, 5*second)
	w := &wire{Tape: t, r: new(Ring), now: epoch, size: tape.Of[int64](t, "size", 5, 7, 80, 97), busy: kind == Bucket && t.Bool("busy")}
	if w.busy {
		window, slack = tape.Of[int64](t, "busy window", minute, 7_777_777, 5*second), 0
	}
	var err error
	if w.d, err = Compile(kind, guard, time.Duration(window)*time.Microsecond, time.Duration(slack)*time.Microsecond); err != nil {
		t.Fatalf("%v", err)
	}
	w.reset = w.now + t.Int("true reset", 1, window)
	stated := int64(0)
	if t.Bool("reset configured") {
		stated = w.reset + window*t.Int("off by windows", -2, 2)
	}
	if err := w.m.Start(&w.d, w.r, w.now, w.size, w.size, stated); err != nil {
		t.Fatalf("%v", err)
	}
	return w
}

func (w *wire) advance(dt int64) {
	w.now += dt
	w.m.Advance(&w.d, w.r, w.now)
}

func (w *wire) pass() {
	if w.busy && w.m.N > 0 && w.Below(3) > 0 {
		w.advance(w.Int("dt", 0, min(max(w.m.Level, 1), 5)*ceilDiv(w.m.W, w.m.N)))
		return
	}
	window := w.d.Window
	if w.busy {
		window /= 8
	}
	w.advance(drawStep(w.Tape, &w.d, &w.m, w.r, w.now, window))
}

func (w *wire) take() {
	slow, count := w.Bool("slow"), int64(1)
	if !w.busy {
		count = w.Int("count", 1, 4)
	}
	for range count {
		room := w.m.Room(&w.d, w.r)
		if room < 1 {
			return
		}
		q := &request{granted: w.now, long: !slow && w.Below(3) == 0, counts: w.Int("cost", 1, room)}
		most := w.r.slack(&w.d)
		if q.long {
			most = w.Int("time to live", most, 2*w.d.Window+most)
		}
		q.due = w.now + most
		q.arrives = w.now + w.Int("delay", 0, most)
		q.Charge = w.m.Take(&w.d, w.r, w.now, q.counts, slow)
		w.sent, w.open = append(w.sent, q), append(w.open, q)
		if w.busy && w.Below(3) > 0 {
			q.arrives = w.now
			w.answered(q)
		}
	}
}

// pick returns a request that is not over, nil if there is none.
func (w *wire) pick() *request {
	if len(w.open) == 0 {
		return nil
	}
	return w.open[w.Below(len(w.open))]
}

func (w *wire) end(q *request) {
	q.ended = true
	w.open = slices.DeleteFunc(w.open, func(o *request) bool { return o.ended })
}

func (w *wire) answer() {
	if q := w.pick(); q != nil {
		if w.now < q.arrives {
			if w.busy && q.arrives-w.now > w.d.Window/8 {
				return
			}
			w.advance(q.arrives - w.now)
		}
		w.answered(q)
	}
}

func (w *wire) answered(q *request) {
	w.m.Bind(&w.d, w.r, w.now, &q.Charge)
	w.end(q)
}

// lapse notices that a ticket's time was over, perhaps long after it.
func (w *wire) lapse() {
	if q := w.pick(); q != nil && q.long && w.now >= q.due {
		w.m.Lapse(&w.d, w.r, q.due, &q.Charge)
		w.end(q)
	}
}

func (w *wire) spend() {
	if q := w.pick(); q != nil && !q.long && q.arrives <= w.now+w.m.Brief(&w.d, w.r) {
		w.m.Spend(&w.d, w.r, w.now, q.granted, &q.Charge)
	}
}

func (w *wire) cancel() {
	if q := w.pick(); q != nil {
		w.m.Refund(&w.d, w.r, w.now, &q.Charge)
		q.refunded = true
		w.end(q)
	}
}

// settle corrects a request that was answered, perhaps long ago. The provider counts less
// from the beginning. What was used beyond the charge nobody could know: it is charged here,
// and the provider lets it pass.
func (w *wire) settle() {
	var done []*request
	for _, q := range w.sent {
		if q.ended && !q.refunded && !q.settled {
			done = append(done, q)
		}
	}
	if len(done) == 0 {
		return
	}
	q := done[w.Below(len(done))]
	most := q.Amount
	if w.Below(4) == 0 {
		most *= 2
	}
	actual := w.Int("actual", 0, most)
	w.m.Settle(&w.d, w.r, w.now, &q.Charge, actual)
	q.counts, q.settled = min(q.counts, actual), true
}

// state tells the meter of a reset what an answer said when it was made, up to two windows ago.
func (w *wire) state() {
	window := w.d.Window
	made := w.now - tape.Of(w.Tape, "age", 0, 0, window/10, window/2, 2*window)
	next := nextReset(w.reset, window, made)
	slop := min(resetSlop, window/4)
	w.m.ObserveReset(&w.d, w.r, w.now, next-w.Int("early", 0, slop), next+w.Int("late", 0, slop))
	if w.d.Kind == Fixed && w.m.Hi != 0 && (w.m.Last > nextReset(w.reset, window, w.now) || w.m.Hi < nextReset(w.reset, window, w.m.Last-1)) {
		w.Fatalf("the true reset is %d from now, the meter has [%d, %d]", nextReset(w.reset, window, w.now)-w.now, w.m.Last-w.now, w.m.Hi-w.now)
	}
}

// withhold changes what is withheld for members that may be cut off: they send nothing.
func (w *wire) withhold() {
	w.d.Part = w.Int("part", 0, Parts)
	w.m.Rerate(&w.d)
}

// resize makes the limit smaller than the provider's for a while.
func (w *wire) resize() {
	size := w.Int("size", 1, w.size)
	if err := w.m.Resize(&w.d, size, size); err != nil {
		w.Fatalf("%v", err)
	}
}

// steps is what a trace does. Changes of the limit itself are seldom.
func (w *wire) steps() []tape.Step {
	return []tape.Step{
		{Name: "pass", Weight: 4, Do: w.pass},
		{Name: "take", Weight: 12, Do: w.take},
		{Name: "answer", Weight: 8, Do: w.answer},
		{Name: "lapse", Weight: 2, Do: w.lapse},
		{Name: "spend", Weight: 2, Do: w.spend},
		{Name: "cancel", Weight: 4, Do: w.cancel},
		{Name: "settle", Weight: 10, Do: w.settle},
		{Name: "state", Weight: 3, Do: w.state},
		{Name: "odd", Weight: 1, Do: func() { w.r.Odd(&w.d, w.now) }},
		{Name: "withhold", Weight: 1, Do: w.withhold},
		{Name: "resize", Weight: 1, Do: w.resize},
	}
}

// counted returns what counts for the provider now, of all that it will ever see.
func (w *wire) counted() (sum int64) {
	if w.d.Kind == Bucket {
		return w.level()
	}
	opened := w.now - w.d.Window
	if w.d.Kind == Fixed {
		opened = nextReset(w.reset, w.d.Window, w.now) - w.d.Window - 1
	}
	for _, q := range w.sent {
		if !q.refunded && q.arrives > opened {
			sum += q.counts
		}
	}
	return sum
}

// level returns what stands in the provider's bucket and what is on its way there.
func (w *wire) level() int64 {
	var arrived []*request
	var ahead, level, last int64 // level in 1/window
	for _, q := range w.sent {
		if q.refunded {
			continue
		}
		if q.arrives > w.now {
			ahead += q.counts
		} else {
			arrived = append(arrived, q)
		}
	}
	slices.SortFunc(arrived, byArrival)
	for _, q := range arrived {
		level = drained(level, q.arrives-last, w.size) + q.counts*w.d.Window
		last = q.arrives
	}
	return ahead + ceilDiv(drained(level, w.now-last, w.size), w.d.Window)
}

func byArrival(a, b *request) int { return int(a.arrives - b.arrives) }

// drained lowers a level by rate for a time.
func drained(level, dt, rate int64) int64 {
	if dt > level/rate {
		return 0
	}
	return level - dt*rate
}

func TestProviderNeverSeesMoreThanTheLimit(t *testing.T) {
	tape.Check(t, 20_000, func(t *tape.Tape) {
		w := newWire(t)
		t.Steps(1, 50, func() {
			checkSound(t, &w.d, &w.m, w.r)
			if used, counted := w.m.Used(&w.d, w.r), w.counted(); used < counted {
				t.Fatalf("%d used, the provider counts %d", used, counted)
			}
			w.pass()
		}, w.steps())
		sent := slices.DeleteFunc(w.sent, func(q *request) bool { return q.refunded })
		slices.SortFunc(sent, byArrival)
		worst := int64(0)
		switch w.d.Kind {
		case Rolling:
			worst = worstRolling(sent, w.d.Window)
		case Fixed:
			worst = worstFixed(sent, w.d.Window, w.reset)
		case Bucket:
			worst = worstBucket(sent, w.size, w.d.Window)
		}
		if worst > w.size {
			t.Fatalf("the provider counts %d, the limit is %d", worst, w.size)
		}
	})
}

func worstRolling(sent []*request, window int64) (worst int64) {
	for i, last := range sent {
		var sum int64
		for _, q := range sent[:i+1] {
			if q.arrives > last.arrives-window {
				sum += q.counts
			}
		}
		worst = max(worst, sum)
	}
	return worst
}

func worstFixed(sent []*request, window, reset int64) (worst int64) {
	sums := map[int64]int64{}
	for _, q := range sent {
		next := nextReset(reset, window, q.arrives)
		sums[next] += q.counts
		worst = max(worst, sums[next])
	}
	return worst
}

func worstBucket(sent []*request, size, window int64) (worst int64) {
	var level, last int64 // in 1/window
	for _, q := range sent {
		level, last = drained(level, q.arrives-last, size)+q.counts*window, q.arrives
		worst = max(worst, ceilDiv(level, window))
	}
	return worst
}
