package meter

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// request is what the provider sees of a charge.
type request struct {
	Charge
	granted, arrives int64
	long             bool // may take longer than the slack, and will be answered
	ended, refunded  bool
}

// TestProviderNeverSeesMoreThanTheLimit plays a provider that counts exactly, with
// requests that arrive at any time between their grant and what the guard takes for
// their bound. A fixed window's true reset is known to the meter only by
// statements that are rounded, late, and sometimes from before the last reset.
func TestProviderNeverSeesMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{Bucket, Rolling, Fixed, Fixed, Fixed}).Draw(t, "kind")
		guard := rapid.SampledFrom([]Guard{Auto, Strict}).Draw(t, "guard")
		window := rapid.SampledFrom([]int64{20_000, second, 3 * second, 5 * second, 10 * second, minute, hour}).Draw(t, "window")
		slack := rapid.SampledFrom([]int64{0, 1000, second / 2, 5 * second}).Draw(t, "slack")
		d, err := Compile(kind, guard, time.Duration(window)*time.Microsecond, time.Duration(slack)*time.Microsecond)
		if err != nil {
			t.Fatal(err)
		}
		size := rapid.SampledFrom([]int64{5, 80}).Draw(t, "size")
		now := int64(1_700_000_000_000_000)
		reset := now + rapid.Int64Range(1, window).Draw(t, "true reset")
		stated := int64(0)
		if rapid.Bool().Draw(t, "reset configured") {
			stated = reset + window*rapid.Int64Range(-2, 2).Draw(t, "off by windows")
		}
		var m Meter
		r := new(Ring)
		if err := m.Start(&d, r, now, size, size, stated); err != nil {
			t.Fatal(err)
		}

		var sent, open []*request
		advance := func(dt int64) {
			now += dt
			m.Advance(&d, r, now)
		}
		end := func(q *request) {
			q.ended = true
			open = slices.DeleteFunc(open, func(o *request) bool { return o.ended })
		}
		pick := func(t *rapid.T) *request { return rapid.SampledFrom(open).Draw(t, "request") }
		scales := []int64{0, 10, 2 * d.Slice, 2 * r.slack(&d), window / 8, window, 2 * window}
		take := func(t *rapid.T) {
			slow := rapid.Bool().Draw(t, "slow")
			for range rapid.IntRange(1, 8).Draw(t, "count") {
				room := m.Room(&d, r)
				if room < 1 {
					return
				}
				cost := rapid.OneOf(rapid.Just(room), rapid.Int64Range(1, room)).Draw(t, "cost")
				q := &request{granted: now, long: !slow && rapid.Bool().Draw(t, "long")}
				most := r.slack(&d)
				if q.long {
					most = 2 * window
				}
				q.arrives = now + rapid.OneOf(rapid.Just(int64(0)), rapid.Just(most), rapid.Int64Range(0, most)).Draw(t, "delay")
				q.Charge = m.Take(&d, r, now, cost, slow)
				sent, open = append(sent, q), append(open, q)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take":       take,
			"take again": take,
			"answer": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				q := pick(t)
				if now < q.arrives {
					advance(q.arrives - now)
				}
				m.Bind(&d, r, now, &q.Charge)
				end(q)
			},
			"spend": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				if q := pick(t); !q.long {
					m.Spend(&d, r, now, q.granted, &q.Charge)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				q := pick(t)
				m.Refund(&d, r, now, &q.Charge)
				q.refunded = true
				end(q)
			},
			"settle": func(t *rapid.T) { // of one that was answered, perhaps long ago
				var done []*request
				for _, q := range sent {
					if q.ended && !q.refunded && q.Amount > 1 {
						done = append(done, q)
					}
				}
				if len(done) > 0 {
					q := rapid.SampledFrom(done).Draw(t, "request")
					m.Settle(&d, r, now, &q.Charge, rapid.Int64Range(1, q.Amount).Draw(t, "actual"))
				}
			},
			"state": func(t *rapid.T) {
				// What the answer said when it was made, up to two windows ago.
				made := now - rapid.SampledFrom([]int64{0, 0, window / 10, window / 2, 2 * window}).Draw(t, "age")
				next := nextReset(reset, window, made)
				slop := rapid.Int64Range(0, min(resetSlop, window/4))
				lo, hi := next-slop.Draw(t, "early"), next+slop.Draw(t, "late")
				m.ObserveReset(&d, r, now, lo, hi)
				if kind == Fixed && m.Hi != 0 && (m.Last > nextReset(reset, window, now) || m.Hi < nextReset(reset, window, m.Last-1)) {
					t.Fatalf("the true reset is %d from now, the meter has [%d, %d]", nextReset(reset, window, now)-now, m.Last-now, m.Hi-now)
				}
			},
			"advance": func(t *rapid.T) {
				advance(rapid.Int64Range(0, rapid.SampledFrom(scales).Draw(t, "scale")).Draw(t, "dt"))
			},
			"": func(t *rapid.T) {
				checkSound(t, &d, &m, r)
				advance(rapid.Int64Range(0, rapid.SampledFrom(scales).Draw(t, "scale")).Draw(t, "dt"))
			},
		})
		sent = slices.DeleteFunc(sent, func(q *request) bool { return q.refunded })
		slices.SortFunc(sent, func(x, y *request) int { return int(x.arrives - y.arrives) })
		worst := int64(0)
		switch kind {
		case Rolling:
			worst = worstRolling(sent, window)
		case Fixed:
			worst = worstFixed(sent, window, reset)
		case Bucket:
			worst = worstBucket(sent, size, window)
		}
		if worst > size {
			t.Fatalf("the provider counts %d, the limit is %d", worst, size)
		}
	})
}

func worstRolling(sent []*request, window int64) (worst int64) {
	for i, last := range sent {
		var sum int64
		for _, q := range sent[:i+1] {
			if q.arrives > last.arrives-window {
				sum += q.Amount
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
		sums[next] += q.Amount
		worst = max(worst, sums[next])
	}
	return worst
}

func worstBucket(sent []*request, size, window int64) (worst int64) {
	var level, last int64 // in 1/window
	for _, q := range sent {
		if q.arrives-last > level/size {
			level = 0
		} else {
			level -= (q.arrives - last) * size
		}
		level, last = level+q.Amount*window, q.arrives
		worst = max(worst, ceilDiv(level, window))
	}
	return worst
}
