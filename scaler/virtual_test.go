package scaler_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/scaler"
	"github.com/sluicehq/sluice/store"
)

var (
	headroom = object("resource", "stock", "target", "10")
	lower    = object("resource", "stock", "target", "10", "class", "p2")
	flow     = object("resource", "flow", "mode", "headroom", "target", "10")
)

// An hour's quota goes from green to red, and comes back with the reset.
func TestLightsOverAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		byLight := object("resource", "stock", "mode", "light", "target", "6")
		for _, step := range []struct {
			remaining                int64
			light                    string
			headroom, lower, byLight int64
		}{
			{6000, "green", 10, 10, 6},
			{2400, "green", 4, 4, 6},
			{1000, "amber", 1, 1, 3},
			{200, "red", 0, 0, 0},
		} {
			r.states("stock", step.remaining, time.Hour)
			s, err := r.gate.Resource(t.Context(), "stock")
			if err != nil || s.Light != step.light {
				t.Fatalf("%s, %v with %d left, want %s", s.Light, err, step.remaining, step.light)
			}
			r.want(headroom, step.headroom, step.light)
			r.want(lower, step.lower, step.light+", of p2")
			r.want(byLight, step.byLight, step.light+", by the light")
		}
		time.Sleep(time.Hour + time.Minute)
		for _, want := range []int64{1, 2, 4, 6, 6} {
			r.want(byLight, want, "after the reset")
			time.Sleep(scaler.RampStep)
		}
		r.want(flow, 8, "all the while")
	})
}

// A pause means no replicas, followed by a ramp. The stream reports both within a second.
func TestPauseAndRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		ctx, cancel := context.WithCancel(t.Context())
		messages, end := r.follow(ctx, flow)
		if m := <-messages; !m.active {
			t.Fatal("not active at first")
		}
		r.want(flow, 8, "before the pause")
		began := time.Now()
		r.pause("flow", time.Minute)
		r.want(flow, 0, "in the pause")
		if m := <-messages; m.active || m.at.Sub(began) >= time.Second {
			t.Errorf("told %v after %v, want false within a second", m.active, m.at.Sub(began))
		}
		over := began.Add(time.Minute)
		if m := <-messages; !m.active || m.at.Before(over) || m.at.Sub(over) >= time.Second {
			t.Errorf("told %v %v after the pause, want true within a second", m.active, m.at.Sub(over))
		}
		// One replica, until somebody has asked and was not refused.
		time.Sleep(2 * time.Minute)
		r.want(flow, 1, "before the probe")
		ticket, err := r.gate.Acquire(t.Context(), sluice.Request{Resource: "flow", Agent: "worker"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
			t.Fatal(err)
		}
		if err := ticket.Close(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int64{1, 2, 4, 8, 8} {
			r.want(flow, want, "after the probe")
			time.Sleep(scaler.RampStep)
		}
		cancel()
		if err := end(); status.Code(err) != codes.Canceled {
			t.Errorf("the stream ended with %v", err)
		}
		r.stop()
		if l := r.log.String(); strings.Count(l, "\n") != 2 || !strings.Contains(l, "name=workers") || !strings.Contains(l, "why=paused") || !strings.Contains(l, "after=paused") {
			t.Errorf("the log says\n%swant one line for each change", l)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		o := object("resource", "quick", "target", "10")
		for i := range int64(6) { // 100 a second
			r.states("quick", 6000-100*i, 50*time.Minute-time.Duration(i)*time.Second)
			time.Sleep(time.Second)
		}
		s, err := r.gate.Resource(t.Context(), "quick")
		if err != nil || s.Limits[0].Breaker != "open" {
			t.Fatalf("the breaker is %+v, %v; want it open", s.Limits, err)
		}
		r.want(o, 0, "while the breaker is open")
		time.Sleep(51 * time.Minute)
		for _, want := range []int64{1, 2, 4, 8} {
			r.want(o, want, "after the reset")
			time.Sleep(scaler.RampStep)
		}
	})
}

// One slot is taken, and three more requests wait.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		o := object("resource", "narrow", "mode", "queue", "target", "2", "class", "p1")
		r.want(o, 0, "with nobody there")
		holder, err := r.gate.Acquire(t.Context(), sluice.Request{Resource: "narrow", Agent: "first", Class: "p1"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error)
		for range 3 {
			go func() {
				_, err := r.gate.Acquire(ctx, sluice.Request{Resource: "narrow", Agent: "more", Class: "p1"})
				gone <- err
			}()
		}
		synctest.Wait()
		r.want(o, 2, "with three waiting")
		r.want(object("resource", "narrow", "mode", "queue", "target", "2", "class", "p2"), 0, "of another class")
		cancel()
		for range 3 {
			if err := <-gone; err == nil {
				t.Error("two at the same time")
			}
		}
		if err := holder.Close(); err != nil {
			t.Fatal(err)
		}
		r.want(o, 2, "just after they left")
		time.Sleep(scaler.Settle)
		r.want(o, 0, "when it has lasted")
	})
}

// The server's stop ends an open stream, in a way that the client takes for a normal end.
func TestStopEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		messages, end := r.follow(t.Context(), flow)
		<-messages
		began := time.Now()
		r.stop()
		if err := end(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
		if d := time.Since(began); d >= time.Second {
			t.Errorf("the stop took %v", d)
		}
	})
}

// The number of streams is bounded, and cancelled streams make room.
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			var ends []func() error
			for range scaler.MaxStreams {
				messages, end := r.follow(ctx, flow)
				if m, ok := <-messages; !ok || !m.active {
					t.Fatalf("stream %d: %v", len(ends), end())
				}
				ends = append(ends, end)
			}
			_, end := r.follow(ctx, flow)
			if err := end(); status.Code(err) != codes.ResourceExhausted {
				t.Errorf("one too many ended with %v", err)
			}
			cancel()
			for _, end := range ends {
				_ = end()
			}
			synctest.Wait() // the server has seen it too
		}
	})
}

// When the gate is closed no number would be true, so calls get an error and not zero, and a stream reports nothing.
func TestAClosedGateIsNoZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		messages, end := r.follow(t.Context(), flow)
		if m := <-messages; !m.active {
			t.Fatal("not active at first")
		}
		if err := r.gate.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		for _, name := range []string{"IsActive", "GetMetrics"} {
			if err := calls[name](t.Context(), r.client, flow); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "flow") {
				t.Errorf("%s: %v, want it unavailable", name, err)
			}
		}
		select {
		case m, open := <-messages:
			t.Errorf("told %+v (%v) of a gate that is closed", m, open)
		default:
		}
		r.stop()
		if err := end(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	})
}
