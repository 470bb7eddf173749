package policy

// Choice is one model that can do a task.
type Choice struct {
	Price int64 // of so many tokens, in any unit that all choices share
	Room  bool  // a request can go now
	Wait  int64 // else the microseconds until it is expected to; negative: nobody knows
}

// RouteCode says why a choice was made.
type RouteCode uint8

// The codes.
const (
	RouteNone     RouteCode = iota // there is nothing to choose from
	RouteCheapest                  // it is the cheapest of all, and has room
	RouteRoom                      // it is the cheapest of those that have room: cheaper ones have none
	RouteSoonest                   // none has room, and it will have some first
	RouteBlind                     // none has room, and of none it is known when: it is the cheapest
)

func (c RouteCode) String() string {
	return [...]string{"none", "cheapest", "room", "soonest", "blind"}[min(c, RouteBlind)]
}

// Routed is a choice, with its reason.
type Routed struct {
	Choice int // -1: none
	Code   RouteCode
	// Passed are the choices that would have come first had they had room.
	Passed []int
}

// Route picks the cheapest choice that has room now, else the one that will have it soonest. The list is in order of
// preference: of two that are as good, the first is taken.
func Route(list []Choice) Routed {
	best := Routed{Choice: -1}
	for i, c := range list {
		if c.Room && (best.Choice < 0 || c.Price < list[best.Choice].Price) {
			best.Choice, best.Code = i, RouteCheapest
		}
	}
	if best.Choice >= 0 {
		for i, c := range list {
			if !c.Room && (c.Price < list[best.Choice].Price || c.Price == list[best.Choice].Price && i < best.Choice) {
				best.Passed, best.Code = append(best.Passed, i), RouteRoom
			}
		}
		return best
	}
	for i, c := range list {
		if best.Choice < 0 || sooner(c, list[best.Choice]) {
			best.Choice = i
		}
	}
	switch {
	case best.Choice < 0:
	case list[best.Choice].Wait < 0:
		best.Code = RouteBlind
	default:
		best.Code = RouteSoonest
	}
	return best
}

// sooner reports that a has room before b; what is not known comes last, and what is cheaper first.
func sooner(a, b Choice) bool {
	switch {
	case a.Wait < 0 || b.Wait < 0:
		if (a.Wait < 0) != (b.Wait < 0) {
			return b.Wait < 0
		}
	case a.Wait != b.Wait:
		return a.Wait < b.Wait
	}
	return a.Price < b.Price
}

// Cheaper returns the cheapest choice that has room and costs less than price, -1 if there is none.
func Cheaper(list []Choice, price int64) int {
	best := -1
	for i, c := range list {
		if c.Room && c.Price < price && (best < 0 || c.Price < list[best].Price) {
			best = i
		}
	}
	return best
}
