package policy

// Choice is one model that can do a task.
type Choice struct {
	Price int64 // for a fixed number of tokens, in any unit that all choices share
	Room  bool  // a request can go now
	Wait  int64 // otherwise the microseconds until it is expected to; negative: unknown
}

// RouteCode says why a choice was made.
type RouteCode uint8

// The codes.
const (
	RouteNone     RouteCode = iota // there are no choices
	RouteCheapest                  // the cheapest of all has room
	RouteRoom                      // the cheapest with room; cheaper ones have none
	RouteSoonest                   // none has room; this one will have room first
	RouteBlind                     // none has room, and it is unknown when; this is the cheapest
)

func (c RouteCode) String() string {
	return [...]string{"none", "cheapest", "room", "soonest", "blind"}[min(c, RouteBlind)]
}

// Routed is a choice, with its reason.
type Routed struct {
	Choice int // -1: none
	Code   RouteCode
	// Passed are the choices that would have come first if they had room.
	Passed []int
}

// Route returns the cheapest choice that has room now, or else the one that will have room soonest. The list is in
// order of preference: of two equal choices, the first wins.
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

// sooner reports whether a will have room before b. Unknown waits come last; of equal waits, the cheaper is first.
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

// Cheaper returns the cheapest choice that has room and costs less than price, or -1 if there is none.
func Cheaper(list []Choice, price int64) int {
	best := -1
	for i, c := range list {
		if c.Room && c.Price < price && (best < 0 || c.Price < list[best].Price) {
			best = i
		}
	}
	return best
}
