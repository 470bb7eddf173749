package order

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// arrival is a waiter with a cost of its own, or several of one agent.
type arrival struct {
	agent string
	class uint8
	n     int
	cost  int64
}

// ahead queues arrivals and returns what Ahead says of the last one.
func ahead(mode Mode, above, front bool, arrivals ...arrival) int64 {
	q, names := newQueue(mode, 2, 1, 1)
	var w int32
	for i, a := range arrivals {
		for range max(a.n, 1) {
			w = q.Push(Position{Agent: names.Hold(a.agent), Class: a.class}, 1, costing(a.cost), front && i == len(arrivals)-1)
		}
	}
	return q.Ahead(w, above)
}

func TestAheadSaysHowMuchGoesFirst(t *testing.T) {
	var hundred []arrival
	for i := range 100 {
		hundred = append(hundred, arrival{fmt.Sprint("agent-", i), 0, 2, 10})
	}
	for name, of := range map[string]struct {
		mode         Mode
		above, front bool
		want         int64 // in 1/1024
		arrivals     []arrival
	}{
		"alone":                                                           {Fair, false, false, 0, []arrival{{"a", 0, 1, 10}}},
		"first come, first served":                                        {FIFO, false, false, 1024, []arrival{{"a", 0, 3, 10}, {"b", 0, 1, 10}}},
		"first come, first served, renewed":                               {FIFO, false, true, 0, []arrival{{"a", 0, 3, 10}, {"a", 0, 1, 10}}},
		"behind its own":                                                  {Fair, false, false, 1024, []arrival{{"a", 0, 3, 10}, {"a", 0, 1, 10}}},
		"renewed, so before its own":                                      {Fair, false, true, 0, []arrival{{"a", 0, 3, 10}, {"a", 0, 1, 10}}},
		"one of another agent's three":                                    {Fair, false, false, 341, []arrival{{"b", 0, 3, 10}, {"a", 0, 1, 10}}},
		"one of its own, and one of another's three":                      {Fair, false, false, 512, []arrival{{"b", 0, 3, 10}, {"a", 0, 1, 10}, {"a", 0, 1, 10}}},
		"two of its own, which cost as much as another's one":             {Fair, false, false, 1024, []arrival{{"b", 0, 1, 20}, {"a", 0, 2, 10}, {"a", 0, 1, 10}}},
		"all of a higher class, strictly":                                 {Strict, false, false, 1024, []arrival{{"b", 0, 3, 10}, {"a", 1, 1, 10}}},
		"none of a lower class, strictly":                                 {Strict, false, false, 0, []arrival{{"b", 1, 3, 10}, {"a", 0, 1, 10}}},
		"a higher class of twice the weight gets twice as much meanwhile": {Fair, false, false, 279, []arrival{{"b", 0, 100, 10}, {"a", 1, 10, 10}, {"a", 1, 1, 10}}},
		"of many agents, half of what they have":                          {Fair, false, false, 517, append(hundred, arrival{"new", 0, 1, 10})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ahead(of.mode, of.above, of.front, of.arrivals...); got != of.want {
				t.Errorf("%d/1024 are ahead, want %d", got, of.want)
			}
		})
	}
	lower := []arrival{{"b", 2, 20, 10}, {"a", 1, 10, 10}}
	if with, without := ahead(Fair, false, false, lower...), ahead(Fair, true, false, lower...); with <= without {
		t.Errorf("%d/1024 are ahead with lower classes, %d without them", with, without)
	}
}

// For one class and equal costs, Ahead errs only towards too little, by at most one request of each other agent.
func TestAheadErrsTowardsTooLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, names := newQueue(Fair, 1)
		costs := func(int32) Costs { return *costing(10) }
		n := int32(rapid.IntRange(2, 60).Draw(t, "n"))
		agents := map[int32]bool{}
		var w int32
		for i := range n {
			agent := names.Hold(fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "agent")))
			agents[agent] = true
			w = q.Push(Position{Agent: agent}, i, costing(10), false)
			if i < n-1 && rapid.IntRange(0, 3).Draw(t, "grant") == 0 {
				q.Granted(q.Heads(Strictness{}, false)[0].Waiter, costing(10))
			}
		}
		others := int64(q.Len() - 1)
		if others == 0 {
			return
		}
		before := int64(0)
		for _, l := range q.List(Strictness{}, q.Len(), costs) {
			if l.Ticket == q.Ticket(w) {
				break
			}
			before++
		}
		got := q.Ahead(w, false)
		if most, least := before*aheadScale/others, (before-int64(len(agents))+1)*aheadScale/others; got > most || got < least {
			t.Fatalf("%d/1024 are ahead, and %d of %d go before: want %d to %d", got, before, others, least, most)
		}
	})
}

func TestShareIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount, ahead := rapid.Int64Range(0, 1<<40).Draw(t, "amount"), rapid.Int64Range(0, aheadScale).Draw(t, "ahead")
		if got, want := Share(amount, ahead), amount*ahead/aheadScale; got != want {
			t.Fatalf("%d/1024 of %d is %d, want %d", ahead, amount, got, want)
		}
	})
	if got := Share(1<<62, aheadScale); got != 1<<62 {
		t.Errorf("all of 2^62 is %d", got)
	}
}

// A request comes behind no more of its own class than waits there, whatever the flows of one agent add up to.
func TestAheadIsNoMoreThanTheClassHas(t *testing.T) {
	q, names := newQueue(Strict, 1, 1)
	a, b := names.Hold("a"), names.Hold("b")
	for range 10 {
		q.Push(Position{Agent: b, Class: 1}, 1, costing(100), false)
	}
	for user := range int32(2) { // each flow is taken for as much as its agent has
		q.Push(Position{Agent: b, User: 1 + user}, 1, costing(10), false)
	}
	var w int32
	for range 5 {
		w = q.Push(Position{Agent: a}, 1, costing(10), false)
	}
	if got, want := q.Ahead(w, false), int64(60*aheadScale/1060); got != want {
		t.Errorf("%d/1024 are ahead, want %d: 60 of 1060", got, want)
	}
}

// What a higher class has been granted already no longer goes first.
func TestAheadCountsNotWhatHasGone(t *testing.T) {
	q, names := newQueue(Fair, 2, 1)
	var first []int32
	for range 100 {
		first = append(first, q.Push(Position{Agent: names.Hold("b")}, 1, costing(10), false))
	}
	var w int32
	for range 11 {
		w = q.Push(Position{Agent: names.Hold("a"), Class: 1}, 1, costing(10), false)
	}
	for _, b := range first[:4] {
		q.Granted(b, costing(10))
	}
	// Its own class has 100 before it, in which time the other gets 200. It has had 40 of them.
	if got, want := q.Ahead(w, false), int64(260*aheadScale/1060); got != want {
		t.Errorf("%d/1024 are ahead, want %d: 100 of its own class and 160 of the other", got, want)
	}
}
