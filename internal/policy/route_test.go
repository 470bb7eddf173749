package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestRoute(t *testing.T) {
	t.Parallel()
	room, full := func(price int64) Choice { return Choice{Price: price, Room: true} }, func(price, wait int64) Choice { return Choice{Price: price, Wait: wait} }
	for name, c := range map[string]struct {
		list   []Choice
		want   int
		code   RouteCode
		passed []int
	}{
		"nothing":                  {nil, -1, RouteNone, nil},
		"one":                      {[]Choice{room(3)}, 0, RouteCheapest, nil},
		"the cheapest":             {[]Choice{room(3), room(1), room(2)}, 1, RouteCheapest, nil},
		"as cheap":                 {[]Choice{room(2), room(1), room(1)}, 1, RouteCheapest, nil},
		"the cheapest with room":   {[]Choice{full(1, 5), room(3), room(2), full(1, -1)}, 2, RouteRoom, []int{0, 3}},
		"a dear one without room":  {[]Choice{full(9, 5), room(3)}, 1, RouteCheapest, nil},
		"an earlier one as cheap":  {[]Choice{full(3, 5), room(3)}, 1, RouteRoom, []int{0}},
		"the soonest":              {[]Choice{full(1, 50), full(9, 5), full(5, 5), full(1, -1)}, 2, RouteSoonest, nil},
		"nobody knows":             {[]Choice{full(4, -1), full(2, -1), full(2, -1)}, 1, RouteBlind, nil},
		"known before not known":   {[]Choice{full(1, -1), full(9, 1<<40)}, 1, RouteSoonest, nil},
		"free and without a price": {[]Choice{room(0), room(0)}, 0, RouteCheapest, nil},
	} {
		got := Route(c.list)
		if got.Choice != c.want || got.Code != c.code || !slices.Equal(got.Passed, c.passed) {
			t.Errorf("%s: got %+v, want %d %v %v", name, got, c.want, c.code, c.passed)
		}
	}
}

// For any list, no choice is better than the one that Route returns.
func TestRouteLeavesNothingBetter(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	for range 20_000 {
		list := make([]Choice, 1+rnd.IntN(6))
		for i := range list {
			list[i] = Choice{Price: rnd.Int64N(4), Room: rnd.IntN(3) == 0, Wait: rnd.Int64N(5) - 1}
		}
		got := Route(list)
		best := list[got.Choice]
		for i, c := range list {
			switch {
			case best.Room && c.Room && c.Price < best.Price, c.Room && !best.Room,
				!best.Room && c.Wait >= 0 && (best.Wait < 0 || c.Wait < best.Wait):
				t.Fatalf("%+v: %d is better than %d", list, i, got.Choice)
			}
		}
		if best.Room != (got.Code == RouteCheapest || got.Code == RouteRoom) || got.Code.String() == "none" {
			t.Fatalf("%+v: %v", list, got)
		}
		if k := Cheaper(list, best.Price); k >= 0 && (best.Room || !list[k].Room || list[k].Price >= best.Price) {
			t.Fatalf("%+v: %d is cheaper than %d", list, k, got.Choice)
		}
	}
}
