package world_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sharedlog/logtest"
	"github.com/sluicehq/sluice/lab/world"
)

func rig(w *world.World) logtest.Rig {
	server := w.Server()
	return logtest.Rig{
		Connect:  func() (sharedlog.Engine, error) { return server.Connect(), nil },
		Lose:     func(string) error { server.Flush(); return nil },
		LoseTail: func(_ string, _ sharedlog.Position, n int64) error { server.LoseBytes(n); return nil },
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	logtest.RunVirtual(t, func(*testing.T) logtest.Rig { return rig(world.New(1)) })
}

func TestLogOverASlowNetwork(t *testing.T) {
	t.Parallel()
	logtest.RunVirtual(t, func(*testing.T) logtest.Rig {
		w := world.New(2)
		w.SetFaults(world.Faults{Delay: 3 * time.Millisecond})
		return rig(w)
	})
}

func TestLogInRealTime(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(*testing.T) logtest.Rig { return rig(world.New(3)) })
}

func TestSameAsAList(t *testing.T) {
	t.Parallel()
	logtest.DifferentialVirtual(t, func(*testing.T) logtest.Rig { return rig(world.New(4)) }, 1, 100)
}

// Whatever goes wrong, all processes end with the same log, and nothing that was acknowledged is lost while its process
// lives.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]world.Faults{
		"calm":          {Delay: time.Millisecond},
		"lost requests": {Delay: time.Millisecond, LoseRequest: 0.1},
		"lost replies":  {Delay: time.Millisecond, LoseReply: 0.2},
		"stalls":        {Delay: time.Millisecond, Stall: world.Chance{Of: 0.02, Most: 4 * time.Second}},
		"a clock set":   {Delay: time.Millisecond, StepClock: world.Chance{Of: 0.05, Most: time.Hour}},
		"flushes":       {Delay: time.Millisecond, Flush: 0.01},
		"lost tails":    {Delay: time.Millisecond, LoseTail: world.Chance{Of: 0.02, Most: 3 * time.Second}},
		"all that there is": {
			Delay: 5 * time.Millisecond, LoseRequest: 0.02, LoseReply: 0.02, Flush: 0.005,
			Stall: world.Chance{Of: 0.01, Most: 3 * time.Second}, LoseTail: world.Chance{Of: 0.01, Most: 3 * time.Second}, StepClock: world.Chance{Of: 0.02, Most: time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(12) {
				ok := t.Run("", func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := world.New(seed)
						w.SetFaults(f)
						logtest.Storm(t, rig(w), seed, func() { w.SetFaults(world.Faults{}) })
					})
				})
				if !ok {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
