//go:build linux || darwin || windows

package filestore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/store"
)

// The system's clock may gain or lose on Go's: macOS slews only one of them. A process that ran for days was as much ahead of
// others as its clocks had drifted apart.
func TestClocksOfOldAndNewProcessesStayTogether(t *testing.T) {
	if cheapClock {
		return // only one clock is read
	}
	for name, rate := range map[string]int64{"it loses": 99, "it gains": 101} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				system := func() int64 { return 1_000_000 + time.Since(begun).Microseconds()*rate/100 }
				old := newBootClock([16]byte{}, system)
				for range 100 {
					time.Sleep(time.Minute)
					old.Now() // a step now and then
					time.Sleep(time.Second)
					if off := (old.Now() - store.Time(system())).Sub(0).Abs(); off > 2*time.Millisecond {
						t.Fatalf("after %v it is off by %v", time.Since(begun), off)
					}
				}
			})
		})
	}
}
