package policy

import (
	"testing"

	"pgregory.net/rapid"
)

// Over any interval at most the burst and the rate are granted. One amount larger than the burst may come on top.
func TestPaceOverAnyInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, 1<<40)).Draw(t, "size")
		window := rapid.Int64Range(1000, 100*86400e6).Draw(t, "window")
		burst := max(size/20, 1)
		type grant struct{ t, amount int64 }
		var p Pace
		var grants []grant
		now := noon
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Int64Range(0, window/20+1), rapid.Just[int64](0), rapid.Int64Range(0, 2*window)).Draw(t, "gap")
			amount := rapid.OneOf(rapid.Just[int64](1), rapid.Int64Range(1, burst), rapid.Int64Range(1, size)).Draw(t, "amount")
			at := p.Allow(now, amount, size, window)
			if at < now {
				t.Fatalf("allowed at %d, before it was asked for", at-now)
			}
			if again := p.Allow(at, amount, size, window); again != at {
				t.Fatalf("at the stated moment it is %d later", again-at)
			}
			if at > now && p.Allow(at-1, amount, size, window) != at {
				t.Fatalf("a microsecond before the stated moment it is not held")
			}
			if at > now && rapid.Bool().Draw(t, "gives up") {
				continue
			}
			now = at
			p.Take(now, amount, size, window)
			grants = append(grants, grant{now, amount})
		}
		for i := range grants {
			sum, largest := int64(0), burst
			for _, g := range grants[i:] {
				sum += g.amount
				largest = max(largest, g.amount)
				if most := float64(largest) + float64(size)*float64(g.t-grants[i].t+int64(len(grants)))/float64(window); float64(sum) > most*(1+1e-9)+1 { // times are whole microseconds
					t.Fatalf("%d in %d us of %d per %d: at most %.2f", sum, g.t-grants[i].t, size, window, most)
				}
			}
		}
	})
}

// A caller that always wants more gets the whole rate: nothing is held longer than necessary.
func TestPaceWastesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, window := rapid.Int64Range(1, 100_000).Draw(t, "size"), rapid.Int64Range(1e6, 86400e6).Draw(t, "window")
		var p Pace
		now, sum := noon, int64(0)
		for range 200 {
			amount := rapid.Int64Range(1, max(size/10, 1)).Draw(t, "amount")
			now = p.Allow(now, amount, size, window)
			p.Take(now, amount, size, window)
			sum += amount
		}
		// The last ones may go ahead of the rate, never behind it; 200 roundings up are allowed for.
		if least := float64(size) * float64(now-noon-200) / float64(window); float64(sum) < least {
			t.Fatalf("%d in %d us of %d per %d, want at least %.2f", sum, now-noon, size, window, least)
		}
	})
}

// A refund undoes its take completely.
func TestPaceRefund(t *testing.T) {
	p, q := Pace{Next: noon}, Pace{Next: noon}
	p.Take(noon, 7, 100, 60e6)
	p.Refund(noon, 7, 100, 60e6)
	if p.Next != q.Next {
		t.Errorf("%d after noon", p.Next-noon)
	}
	p.Take(noon, 5, 100, 60e6)
	p.Refund(noon, -5, 100, 60e6) // it was ten
	q.Take(noon, 10, 100, 60e6)
	if p.Next != q.Next {
		t.Errorf("%d after noon, want %d", p.Next-noon, q.Next-noon)
	}
	p.Refund(noon+3600e6, -5, 100, 60e6) // what is told late counts from then on
	if p.Next != noon+3603e6 {
		t.Errorf("%d after noon", p.Next-noon)
	}
}

// Changes at the same time may be recorded in any order, or as a sum. What AllowsAll lets go, Allow lets go one by
// one.
func TestPaceOfOneMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 1<<40)).Draw(t, "size")
		window := rapid.Int64Range(1000, 86400e6).Draw(t, "window")
		p := Pace{Next: noon + rapid.Int64Range(-10, window/10).Draw(t, "next")}
		if rapid.Bool().Draw(t, "earlier") {
			p.Take(noon, rapid.Int64Range(-size/10, size/10).Draw(t, "before"), size, window)
		}
		amounts := rapid.SliceOfN(rapid.Int64Range(0, size/30+1), 1, 8).Draw(t, "amounts")
		var sum int64
		for _, a := range amounts {
			sum += a
		}
		one, all, back := p, p, p
		may := p.AllowsAll(noon, sum, size, window)
		for i, a := range amounts {
			if may && one.Allow(noon, a, size, window) != noon {
				t.Fatalf("request %d of %v is held", i, amounts)
			}
			one.Take(noon, a, size, window)
			back.Take(noon, amounts[len(amounts)-1-i], size, window)
		}
		all.Take(noon, sum, size, window)
		if one != all || one != back {
			t.Fatalf("one by one %+v, in the other order %+v, as a sum %+v", one, back, all)
		}
		one.Refund(noon, sum, size, window)
		back.Take(noon, -sum, size, window)
		if one != back || one.Next != p.Next && p.at == noon {
			t.Fatalf("given back %+v, taken less %+v, before %+v", one, back, p)
		}
	})
}
