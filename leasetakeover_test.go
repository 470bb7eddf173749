package sluice_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

func on(machine string) sluice.JoinRequest {
	return sluice.JoinRequest{Agent: "a", Machine: machine, User: "u"}
}

// An agent that appears on another machine has moved: its lease goes there at once, and the old machine is told so,
// whatever it sends.
func TestAgentThatMovesIsToldWhereItWas(t *testing.T) {
	for name, gates := range map[string]int{"through one gate": 1, "through two": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, s := &record{}, newShared(t)
				one := s.open(t, sluice.Config{Events: kept.add}, hundred())
				two := one
				if gates == 2 {
					two = s.open(t, sluice.Config{Events: kept.add}, hundred())
				}
				if got := checkIn(t, one, on("m1")); got.TakenOverBy != "" || got.Allocated != 100 {
					t.Fatalf("told %+v", got)
				}
				time.Sleep(time.Minute)
				if got := checkIn(t, two, on("m2")); got.TakenOverBy != "" || got.Allocated != 100 || !got.Start {
					t.Fatalf("told %+v", got)
				}
				if a := agent(t, one, "a"); a.Machine != "m2" || !a.Leased {
					t.Errorf("it is %+v", a)
				}
				if gates == 1 {
					if e := kept.last(t, inspect.EventTakenOver); e.Agent != "a" || e.User != "u" || e.Machine != "m2" || e.FromMachine != "m1" {
						t.Errorf("the event is %+v", e)
					}
				}
				for range 20 { // much longer than a lease
					time.Sleep(time.Minute)
					if got := checkIn(t, one, on("m1")); got.TakenOverBy != "m2" || got.Start || got.Chain == nil || got.Reason != `machine "m2" has taken the lease over` {
						t.Fatalf("where it was it is told %+v", got)
					}
					if got := checkIn(t, two, on("m2")); got.TakenOverBy != "" {
						t.Fatalf("where it is it is told %+v", got)
					}
				}
				// Leaving where it was does not end it where it is; from then on it could move back.
				if err := one.Leave(on("m1")); err != nil {
					t.Fatal(err)
				}
				if a := agent(t, one, "a"); a.Machine != "m2" {
					t.Errorf("it is %+v", a)
				}
				if got := checkIn(t, one, on("m1")); got.TakenOverBy != "" {
					t.Errorf("it cannot move back: %+v", got)
				}
				time.Sleep(2 * time.Second)
				if got := checkIn(t, two, on("m2")); got.TakenOverBy != "m1" {
					t.Errorf("it has moved back, and is told %+v", got)
				}
			})
		})
	}
}

// If the agent's new machine dies or leaves, the old one gets the lease again.
func TestAgentComesBackWhenTheOtherMachineIsDead(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *sluice.Gate){
		"dead": func(*testing.T, *sluice.Gate) {},
		"left": func(t *testing.T, g *sluice.Gate) {
			if err := g.Leave(on("m2")); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{hundred()}}}})
				checkIn(t, g, on("m1"))
				checkIn(t, g, on("m2"))
				end(t, g)
				var told inspect.CheckInResult
				for range 7 {
					time.Sleep(time.Minute)
					told = checkIn(t, g, on("m1"))
					if told.TakenOverBy == "" {
						break
					}
				}
				if a := agent(t, g, "a"); told.TakenOverBy != "" || a.Machine != "m1" {
					t.Errorf("told %+v; it is %+v", told, a)
				}
			})
		})
	}
}

// A lease that a process renews by itself is not taken back either.
func TestLeaseThatWasTakenOverIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, s := &record{}, newShared(t)
		one, two := s.open(t, sluice.Config{Events: kept.add}, hundred()), s.open(t, sluice.Config{}, hundred())
		old := join(t, one, on("m1"))
		time.Sleep(time.Minute)
		taken := join(t, two, on("m2"))
		time.Sleep(20 * time.Minute)
		if a := agent(t, one, "a"); a.Machine != "m2" {
			t.Errorf("it is %+v", a)
		}
		if err := old.Err(); !errors.Is(err, sluice.ErrTakenOver) {
			t.Errorf("where it was: %v", err)
		}
		if err := old.WaitFor(t.Context(), "b"); !errors.Is(err, sluice.ErrTakenOver) {
			t.Errorf("it says whom it waits for: %v", err)
		}
		if e := kept.last(t, inspect.EventLeaseLost); e.Agent != "a" || e.Error != `agent "a": machine "m2" has taken the lease over` {
			t.Errorf("the event is %+v", e)
		}
		if err := taken.Err(); err != nil {
			t.Errorf("where it is: %v", err)
		}
		leave(t, taken)
		time.Sleep(4 * time.Minute)
		if a := agent(t, one, "a"); a.Machine != "m1" || old.Err() != nil {
			t.Errorf("the other has left: it is %+v, %v", a, old.Err())
		}
		leave(t, old)
	})
}
