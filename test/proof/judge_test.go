package proof_test

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// judge is the provider's side of one limit for one scope. Two judges sit in it: a
// provider model that decides request by request, and the rule itself, read off the
// list of all arrivals afterwards. They must agree.
type judge struct {
	limit    *store.Limit
	phase    store.Time // a moment at which a fixed window resets
	rule     sim.Rule
	arrivals []arrival
	refused  int
}

type arrival struct {
	at, end store.Time // end: of the provider's work
	cost    int64
}

func newJudge(l *store.Limit, phase store.Time) *judge {
	rule := sim.Limit{Kind: l.Kind, Size: l.Size, Burst: l.Burst, Window: l.Window}.Rule
	if l.Kind == store.Fixed {
		return &judge{limit: l, phase: phase, rule: sim.NewFixed(l.Size, l.Window, phase)}
	}
	return &judge{limit: l, rule: rule()}
}

// arrive judges a request of which the provider knows the cost at t. A request that is
// refused counts for nothing.
func (j *judge) arrive(t, end store.Time, cost int64) bool {
	if !sim.Admit(j.rule, t, cost) {
		j.refused++
		return false
	}
	j.arrivals = append(j.arrivals, arrival{t, end, cost})
	return true
}

// broken checks the limit on every window of the recorded arrivals, which are in the order of
// time, and says where it does not hold.
func (j *judge) broken() error {
	switch j.limit.Kind {
	case store.Bucket:
		return j.bucketBroken()
	case store.Rolling:
		return j.rollingBroken()
	case store.Fixed:
		return j.fixedBroken()
	default:
		return j.placesBroken()
	}
}

func (j *judge) rollingBroken() error {
	var sum int64
	first := 0
	for _, a := range j.arrivals {
		sum += a.cost
		for j.arrivals[first].at <= a.at.Add(-j.limit.Window) {
			sum -= j.arrivals[first].cost
			first++
		}
		if sum > j.limit.Size {
			return fmt.Errorf("%d arrived in the %v before %v, %d may", sum, j.limit.Window, since(a.at), j.limit.Size)
		}
	}
	return nil
}

func (j *judge) fixedBroken() error {
	used := map[int64]int64{}
	for _, a := range j.arrivals {
		w := j.limit.Window.Microseconds()
		k := int64(a.at-j.phase) / w
		if int64(a.at-j.phase)%w < 0 {
			k--
		}
		if used[k] += a.cost; used[k] > j.limit.Size {
			return fmt.Errorf("%d arrived between the resets around %v, %d may", used[k], since(a.at), j.limit.Size)
		}
	}
	return nil
}

// bucketBroken counts in units of 1/window of a token, which is exact.
func (j *judge) bucketBroken() error {
	var level int64
	var last store.Time
	scale := j.limit.Window.Microseconds()
	for _, a := range j.arrivals {
		level = max(level-int64(a.at-last)*j.limit.Size, 0)
		last = a.at
		if level += a.cost * scale; level > j.limit.Burst*scale {
			return fmt.Errorf("level %.3f at %v, the bucket holds %d", float64(level)/float64(scale), since(a.at), j.limit.Burst)
		}
	}
	return nil
}

func (j *judge) placesBroken() error {
	for _, a := range j.arrivals {
		var busy int64
		for _, b := range j.arrivals {
			if b.at <= a.at && a.at < b.end {
				busy += b.cost
			}
		}
		if busy > max(j.limit.Size, 0) && a.end > a.at {
			return fmt.Errorf("%d in progress at %v, there are %d places", busy, since(a.at), j.limit.Size)
		}
	}
	return nil
}

// since is a moment as people read traces: from the beginning on.
func since(t store.Time) time.Duration { return t.Sub(sim.Epoch) }
