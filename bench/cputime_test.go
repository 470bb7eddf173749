//go:build linux && cputime

package main

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// threadCPU returns the processor time of this thread.
func threadCPU(tb testing.TB) time.Duration {
	const threadClock = 3 // CLOCK_THREAD_CPUTIME_ID
	var ts syscall.Timespec
	if _, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadClock, uintptr(unsafe.Pointer(&ts)), 0); err != 0 {
		tb.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// TestCPUTime prints the processor time of a call, for machines that are busy with other work: contenders take turns of
// a thousand calls, too short to be interrupted often.
func TestCPUTime(t *testing.T) {
	runtime.LockOSThread()
	want := map[string]bool{nameSluice: true, nameXTime: true, nameSethvar: true}
	for _, s := range shapes() {
		if s.threads != 1 {
			continue
		}
		keys := keyNames(s.keys)
		type run struct {
			name string
			take func(string) bool
			at   int
			ns   []float64
		}
		var runs []*run
		for _, c := range s.contenders {
			if !want[c.name] {
				continue
			}
			take, _, err := c.build(keys)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				take(k)
			}
			runs = append(runs, &run{name: c.name, take: take})
		}
		runtime.GC()
		const ops = 1000
		for range 1500 {
			for _, r := range runs {
				began := threadCPU(t)
				for range ops {
					r.take(keys[r.at])
					if r.at++; r.at == len(keys) {
						r.at = 0
					}
				}
				r.ns = append(r.ns, float64(threadCPU(t)-began)/ops)
			}
		}
		for _, r := range runs {
			slices.Sort(r.ns)
			t.Logf("%-28s %-22s p10 %6.0f ns, median %6.0f", s.name, r.name, r.ns[len(r.ns)/10], r.ns[len(r.ns)/2])
		}
	}
}
