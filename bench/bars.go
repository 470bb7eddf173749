package main

// Bar is a figure that Sluice is meant to keep.
type Bar struct {
	What  string  `json:"what"`
	Got   float64 `json:"got"`
	Least float64 `json:"least,omitempty"`
	Most  float64 `json:"most"`
	Pass  bool    `json:"pass"`
}

func bar(what string, got, least, most float64) Bar {
	return Bar{what, got, least, most, got >= least && got <= most}
}

// Allocations are counted over the whole process; a sweep in the background may
// add a few to millions of calls.
const noAllocs = 0.005

// bars returns nothing when Sluice did not take part.
func bars(r Report) []Bar {
	one := find(r.Allow, shapeHot1, nameSluice)
	if one.NS == 0 {
		return nil
	}
	allow := find(r.Allow, shapeHot1, nameXTime)
	keys, sethvargo := find(r.Allow, shapeKeys, nameSluice), find(r.Allow, shapeKeys, nameSethvar)
	many, manyBase := find(r.Allow, shapeFour, nameSluice), find(r.Allow, shapeFour, nameXTime)
	all := []Bar{
		bar("one limit, Acquire+Close: times x/time/rate Allow", one.NS/allow.NS, 0, 3),
		bar("one limit: allocations per Acquire+Close", one.Allocs, 0, noAllocs),
		bar("four limits: times one x/time/rate Allow", many.NS/manyBase.NS, 0, 5),
		bar("100,000 per-agent limits: times sethvargo/go-limiter", keys.NS/sethvargo.NS, 0, 1.5),
	}
	for _, w := range r.Waiting {
		if w.Name != nameSluice {
			continue
		}
		all = append(all,
			bar("waiting: share of the rate", w.Share, 0.999, 1),
			bar("waiting: share of the rate at its highest", w.Peak, 0, 1),
			bar("waiting: CPU per release, times x/time/rate", w.Ratio, 0, 1.2),
		)
		if w.Inversions >= 0 {
			all = append(all, bar("waiting: grants out of order", float64(w.Inversions), 0, 0))
		}
	}
	return all
}
