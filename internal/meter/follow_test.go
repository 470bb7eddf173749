package meter

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
)

// told is a request whose response states what the provider counts. It is made between the arrival and the answer, and
// answers come in any order.
type told struct {
	Charge
	counts                   int64 // what the provider counts: at most what was charged
	granted, arrives, stated int64
	answered                 int64
	over, settled            bool
}

// follower is a meter of a longer window than its provider has, which is brought down to what responses state.
type follower struct {
	*tape.Tape
	d, truth Def
	m        Meter
	r        *Ring
	now      int64
	size     int64
	reset    int64 // a reset of a fixed window
	all      []*told
	open     []*told
}

func newFollower(t *tape.Tape) *follower {
	f := &follower{Tape: t, r: new(Ring), now: epoch, size: tape.Of[int64](t, "size", 1, 5, 7, 80)}
	window := tape.Of(t, "window", second/2, second, 3*second, 7_777_777, 10*second, minute)
	ours := Rolling
	f.truth = Def{Kind: tape.Of(t, "kind", Bucket, Rolling, Fixed), Window: window}
	if f.truth.Kind == Bucket && t.Bool("bucket") {
		ours = Bucket
	}
	var err error
	longer := window * tape.Of[int64](t, "longer", 1, 2, 6, 60)
	if f.d, err = Compile(ours, Auto, time.Duration(longer)*time.Microsecond, 0); err != nil {
		t.Fatalf("%v", err)
	}
	f.reset = f.now + t.Int("reset", 0, window)
	if err := f.m.Start(&f.d, f.r, f.now, f.size, f.size, 0); err != nil {
		t.Fatalf("%v", err)
	}
	f.r.Follow(f.now, tape.Of[int64](t, "apart", 1, 1000, second/10))
	return f
}

// count returns what the provider counts at a time, and in which time all of that is back.
func (f *follower) count(at int64) (used, back int64) {
	sent := slices.Clone(f.all)
	slices.SortFunc(sent, func(a, b *told) int { return int(a.arrives - b.arrives) })
	window := f.truth.Window
	next := nextReset(f.reset, window, at)
	var level, last int64
	for _, q := range sent {
		if q.arrives > at {
			break
		}
		switch f.truth.Kind {
		case Bucket:
			level, last = drained(level, q.arrives-last, f.size)+q.counts*window, q.arrives
			if level > f.size*window {
				f.Fatalf("the provider's bucket holds %d of %d", ceilDiv(level, window), f.size)
			}
		case Rolling:
			if q.arrives > at-window {
				used, back = used+q.counts, q.arrives+window-at
			}
		default:
			if q.arrives >= next-window {
				used, back = used+q.counts, next-at
			}
		}
	}
	if f.truth.Kind == Bucket {
		level = drained(level, at-last, f.size)
		used, back = ceilDiv(level, window), ceilDiv(level, f.size)
	}
	return used, back
}

func (f *follower) advance(dt int64) {
	f.now += dt
	f.m.Advance(&f.d, f.r, f.now)
}

func (f *follower) take() {
	for range f.Int("count", 1, 4) {
		room := min(f.m.Room(&f.d, f.r), f.size)
		if room < 1 {
			return
		}
		q := &told{granted: f.now}
		amount := f.Int("amount", 1, room)
		q.counts = amount
		if f.Bool("less") {
			q.counts = f.Int("counts", 0, amount)
		}
		most := tape.Of(f.Tape, "delay", 1, f.truth.Window/50, f.truth.Window/2, 2*f.truth.Window)
		q.arrives = f.now + f.Int("request", 0, most)
		q.stated = q.arrives + f.Int("work", 0, most)
		q.answered = q.stated + f.Int("response", 0, most)
		q.Charge = f.m.Take(&f.d, f.r, f.now, amount, false)
		f.all, f.open = append(f.all, q), append(f.open, q)
	}
}

func (f *follower) answer() {
	if len(f.open) == 0 {
		return
	}
	k := f.Below(len(f.open))
	q := f.open[k]
	f.open = slices.Delete(f.open, k, k+1)
	f.advance(max(q.answered-f.now, 0))
	f.m.Bind(&f.d, f.r, f.now, &q.Charge)
	q.over = true
	if f.Below(4) == 0 {
		return // states nothing
	}
	used, back := f.count(q.stated)
	unseen, known := f.r.Unseen(q.granted)
	if !known {
		f.m.Forget(&f.d, f.r, f.now, f.now+back, q.Amount, -1)
		return
	}
	unseen = max(unseen-q.Amount, 0)
	f.m.Forget(&f.d, f.r, f.now, f.now+back, q.Amount, unseen)
	f.m.Sync(&f.d, f.r, f.now, used+unseen)
}

func (f *follower) settle() {
	for _, q := range f.all {
		if q.over && !q.settled {
			f.m.Settle(&f.d, f.r, f.now, &q.Charge, q.counts)
			q.settled = true
			return
		}
	}
}

// While what responses state is true, a ledger that follows it never has less than the provider counts, for each kind of
// limit, whatever window it assumes.
func TestFollowingTrueStatementsNeverExceedsTheProvider(t *testing.T) {
	tape.Check(t, 20_000, func(t *tape.Tape) {
		f := newFollower(t)
		t.Steps(1, 60, func() {
			checkSound(t, &f.d, &f.m, f.r)
			used, _ := f.count(f.now)
			for _, q := range f.all {
				if q.arrives > f.now {
					used += q.counts
				}
			}
			if ours := f.m.Used(&f.d, f.r); ours < used {
				t.Fatalf("%d used, the provider counts %d", ours, used)
			}
			f.advance(f.Int("dt", 0, tape.Of(f.Tape, "scale", 10, f.truth.Window/40, f.truth.Window/4, f.truth.Window)))
		}, []tape.Step{
			{Name: "take", Weight: 8, Do: f.take},
			{Name: "answer", Weight: 10, Do: f.answer},
			{Name: "settle", Weight: 4, Do: f.settle},
		})
	})
}
