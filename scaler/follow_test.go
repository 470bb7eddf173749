package scaler_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/scaler"
)

// another opens a gate with a flow of its own size, as a new configuration would.
func (r *rig) another(size int64) (*sluice.Gate, map[string]sluice.Resource) {
	r.tb.Helper()
	own := map[string]sluice.Resource{"flow": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: size, Window: time.Minute}}}}
	gate, err := sluice.Open(context.Background(), sluice.Config{Store: "mem:", Resources: own})
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { _ = gate.Close() })
	return gate, own
}

// A new configuration takes effect at once, for calls and for open streams; ramps continue.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		goes, endGoes := r.follow(t.Context(), flow)
		leaves, endLeaves := r.follow(t.Context(), headroom)
		if first, second := <-goes, <-leaves; !first.active || !second.active {
			t.Fatal("not active at first")
		}
		r.pause("flow", time.Hour)
		if m := <-goes; m.active {
			t.Fatal("active while paused")
		}
		r.want(flow, 0, "before")

		gate, own := r.another(40)
		r.server.Follow(gate, []string{"first", "second"}, own)
		if err := r.gate.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if m := <-goes; !m.active || m.at.Sub(began) >= time.Second {
			t.Errorf("told %v after %v, want true within a second", m.active, m.at.Sub(began))
		}
		time.Sleep(time.Until(began.Add(scaler.RampStep - time.Second))) // in the first step, whenever it began
		for _, want := range []int64{1, 2, 4, 4} {
			r.want(flow, want, "after")
			time.Sleep(scaler.RampStep)
		}
		if err := endLeaves(); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "stock") {
			t.Errorf("the stream of a resource that is gone ended with %v", err)
		}
		if _, err := r.client.IsActive(t.Context(), object("resource", "flow", "target", "10", "class", "p1")); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "first, second") {
			t.Errorf("a class of before: %v", err)
		}
		r.want(object("resource", "flow", "target", "10", "class", "second"), 4, "of a new class")
		if err := gate.Pause(t.Context(), "flow", time.Hour, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if m := <-goes; m.active {
			t.Error("the stream does not speak of the new gate")
		}
		r.stop()
		if err := endGoes(); err != nil {
			t.Errorf("the stream ended with %v", err)
		}
	})
}

// A running call reads again, because its gate has been closed meanwhile.
func TestFollowDuringACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := inBubble(t)
		for name, call := range calls {
			release := scaler.Hold(r.server, "flow")
			done := make(chan error, 1)
			go func() { done <- call(t.Context(), r.client, object("resource", "flow", "target", "10")) }()
			synctest.Wait() // it stands at the old gate
			gate, own := r.another(40)
			r.server.Follow(gate, nil, own)
			_ = r.gate.Close()
			r.gate = gate
			release()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Gates are replaced during concurrent calls, and no call notices.
func TestFollowWhileAsked(t *testing.T) {
	r := overLoopback(t)
	stream, cancel := context.WithCancel(t.Context())
	defer cancel()
	messages, _ := r.follow(stream, flow)
	if m := <-messages; !m.active {
		t.Fatal("not active at first")
	}
	over := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			o := object("resource", "flow", "target", "10")
			o.Name = fmt.Sprint("workers-", i)
			for {
				for name, call := range calls {
					if err := call(t.Context(), r.client, o); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	before := r.gate
	for i := range int64(30) {
		gate, own := r.another(40 + 10*i)
		r.server.Follow(gate, nil, own)
		if err := before.Close(); err != nil {
			t.Error(err)
		}
		before = gate
		if _, err := r.client.IsActive(t.Context(), flow); err != nil {
			t.Error(err)
		}
	}
	close(over)
	wg.Wait()
	select {
	case m, open := <-messages:
		t.Errorf("the stream told %+v (%v), and nothing had changed", m, open)
	default:
	}
}
