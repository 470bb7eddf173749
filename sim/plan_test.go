package sim

import (
	"testing"
	"time"
)

// A person's session is never refused or delayed while background agents use the rest. A week's quota lasts the week at
// three times the demand.
func TestAWeekOfASubscriptionLasts(t *testing.T) {
	sc, err := Load("subscription")
	if err != nil {
		t.Fatal(err)
	}
	const week = 7 * 24 * time.Hour
	quota := sc.Limits[0].Size
	if want := float64(sc.calls()) / float64(quota); want < 2.9 {
		t.Fatalf("the demand is %.1f times the quota", want)
	}
	for seed := uint64(1); seed <= 3; seed++ {
		r, err := simulate(sc, newSluice, LightTail, seed)
		if err != nil {
			t.Fatal(err)
		}
		p0 := r.tally.classes[0]
		if p0.refused != 0 || p0.accepted != p0.calls || p0.gap > 5e6 {
			t.Errorf("seed %d: %d of the person's %d calls were accepted, %d refused, one waited %v", seed, p0.accepted, p0.calls, p0.refused, time.Duration(p0.gap)*time.Microsecond)
		}
		if n := r.tally.throttled; n > 10 {
			t.Errorf("seed %d: %d refused", seed, n)
		}
		if used := float64(len(r.tally.accepted)) / float64(quota); used < 0.98 {
			t.Errorf("seed %d: %.4f of the week was used", seed, used)
		}
		// Each day gets its part, except the first, which may use a fifth at once.
		for day := 1; day <= 7; day++ {
			n := 0
			for _, at := range r.tally.accepted {
				if at <= Epoch.Add(time.Duration(day)*24*time.Hour) {
					n++
				}
			}
			even := float64(day) * 24 * float64(time.Hour) / float64(week)
			if used := float64(n) / float64(quota); used > 0.25+0.8*even || used < 0.9*even {
				t.Errorf("seed %d: %.3f of the week was used after day %d", seed, used, day)
			}
		}
		if p2 := r.tally.classes[2]; p2.accepted == 0 {
			t.Errorf("seed %d: the lowest class had nothing", seed)
		}
	}
	// Without the gate the quota is used up before half of the week is over, and the person is refused.
	r, err := simulate(sc, newExponential, LightTail, 1)
	if err != nil {
		t.Fatal(err)
	}
	if p0 := r.tally.classes[0]; p0.refused == 0 || p0.accepted > p0.calls*2/3 {
		t.Errorf("without the gate %d of the person's %d calls were accepted, %d refused: this test shows nothing", p0.accepted, p0.calls, p0.refused)
	}
}
