package proof_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Under saturation each class gets its share and the agents of a class the same, in what
// they cost and however many they are.
func TestSharesUnderSaturation(t *testing.T) {
	t.Parallel()
	classOf := []int{0, 1, 1, 1, 2} // of each agent
	share := []float64{0.40, 0.35, 0.25}
	agentsOf := []float64{1, 3, 1}
	for name, l := range map[string]store.Limit{
		"rolling":     {Kind: store.Rolling, Size: 100, Window: time.Minute},
		"bucket":      {Kind: store.Bucket, Size: 10, Burst: 20, Window: time.Second},
		"fixed":       {Kind: store.Fixed, Size: 100, Window: time.Minute},
		"concurrency": {Kind: store.Concurrency, Size: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(2, 2))
			tr := backlog(l, 8000, 1, sim.LightTail, quickly)
			tr.spec.Classes = []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}}
			for i := range tr.plans {
				p := &tr.plans[i]
				p.agent = rng.IntN(len(classOf))
				p.class, p.model = classOf[p.agent], p.agent%2
				p.cost[0] = 1 + rng.Int64N(4)
				if p.agent == 1 {
					p.cost[0] = 1 // many small ones count like few large ones
				}
				p.used[0] = p.cost[0]
			}
			w := play(tr, nil)
			if w.failure != nil {
				t.Fatal(w.failure)
			}
			// Everybody has something waiting as long as the busiest has not run dry.
			var class, agent [5]float64
			var total float64
			for _, i := range w.order[:2500] {
				p := &tr.plans[i]
				class[p.class] += float64(p.cost[0])
				agent[p.agent] += float64(p.cost[0])
				total += float64(p.cost[0])
			}
			for c, want := range share {
				if got := class[c] / total; math.Abs(got/want-1) > 0.05 {
					t.Errorf("class %d got %.3f, want %.3f", c, got, want)
				}
			}
			for a, c := range classOf {
				want := share[c] / agentsOf[c]
				if got := agent[a] / total; math.Abs(got/want-1) > 0.05 {
					t.Errorf("agent %d of class %d got %.3f, want %.3f", a, c, got, want)
				}
			}
			t.Logf("classes %.3f, agents %.3f", []float64{class[0] / total, class[1] / total, class[2] / total},
				[]float64{agent[0] / total, agent[1] / total, agent[2] / total, agent[3] / total, agent[4] / total})
		})
	}
}

// One that needs most of two limits is granted in the time that its cost implies though small
// ones stream past on each, and those for another model are not held up by it.
func TestLargeRequestAmongSmallOnes(t *testing.T) {
	t.Parallel()
	tr := backlog(store.Limit{Kind: store.Rolling, Size: 100, Window: time.Minute, Per: store.PerModel}, 3000, 1, sim.LightTail, quickly)
	tr.spec.Limits = append(tr.spec.Limits, store.Limit{
		Name: "second", Unit: "v", Kind: store.Rolling, Size: 100, Window: time.Minute, Per: store.PerModel,
	})
	for i := range tr.plans {
		p := &tr.plans[i]
		p.agent = 1 + i%4
		p.model = i / 2 % 2
		p.cost = [most]int64{}
		p.cost[i%2] = 1
		p.used = p.cost
	}
	const large = 600
	p := &tr.plans[large]
	p.at, p.agent, p.model = 90_000_000, 0, 0
	p.cost, p.used = [most]int64{90, 90}, [most]int64{90, 90}
	w := play(tr, nil)
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	other, at := 0, store.Time(0)
	for k, i := range w.order {
		if i == large {
			at = w.grants[k]
		}
	}
	asked := sim.Epoch + p.at
	waited := at.Sub(asked)
	for k, i := range w.order {
		if tr.plans[i].model == 1 && w.grants[k] > asked && w.grants[k] <= asked.Add(2*time.Minute) {
			other++
		}
	}
	t.Logf("90%% of two limits: granted after %v; the other model got %d in two minutes", waited, other)
	if at == 0 || waited > 2*time.Minute {
		t.Errorf("waited %v", waited)
	}
	if other < 380 {
		t.Errorf("the other model got %d in two minutes, its limits hold 400", other)
	}
}
