package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Memory is the daemon's own memory in bytes: at certain times, and means over thirds of the load. Files is the memory
// of its store's mapped files, which is separate: it grows up to a bound, and the system reclaims it when it needs
// room.
type Memory struct {
	Idle   int64 `json:"idle"` // at the end of the baseline
	Middle int64 `json:"middle"`
	End    int64 `json:"end"`
	Peak   int64 `json:"peak"`
	Second int64 `json:"second_third"`
	Last   int64 `json:"last_third"`
	Files  int64 `json:"files"` // at the end of the load
}

// watcher samples the daemon every second.
type watcher struct {
	gauge   *gauge
	every   time.Duration // interval of samples that cost the daemon something
	held    []sample
	samples []int64
	files   int64
	threads int64
}

// watch samples until the phase is over, and prints the progress.
func (v *watcher) watch(ctx context.Context, pid int, p *phase, begun time.Time, over <-chan struct{}, stderr io.Writer) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	told, looked := begun, begun
	for {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case now := <-each.C:
			own, files, err := memory(pid)
			if err == nil {
				v.samples, v.files = append(v.samples, own), files
			}
			v.threads = max(v.threads, threads(pid))
			if now.Sub(looked) >= v.every {
				looked = now
				v.held = append(v.held, v.gauge.look(ctx))
			}
			if now.Sub(told) >= 10*time.Second {
				told = now
				fmt.Fprintf(stderr, "soak: %3.0fs: %d of %d tickets, %d of %d heartbeats; p99 of acquire %s, of heartbeat %s; %s\n", now.Sub(begun).Seconds(),
					p.ended.Load(), p.tickets, p.renewed.Load(), p.beats, brief(p.acquire.at(0.99)), brief(p.beat.at(0.99)), size(own))
			}
		}
	}
}

func (v *watcher) memory(idle int64) Memory {
	n := len(v.samples)
	if n == 0 {
		return Memory{Idle: idle}
	}
	m := Memory{Idle: idle, Middle: v.samples[n/2], End: v.samples[n-1], Second: mean(v.samples[n/3 : max(n*2/3, n/3+1)]), Last: mean(v.samples[n*2/3:]), Files: v.files}
	for _, s := range v.samples {
		m.Peak = max(m.Peak, s)
	}
	return m
}

func mean(list []int64) int64 {
	sum := int64(0)
	for _, n := range list {
		sum += n
	}
	return sum / int64(max(len(list), 1))
}

// grows reports whether the last third is higher than the second by more than a tenth and more than 20 MB.
func (m Memory) grows() bool {
	more := m.Last - m.Second
	return more*10 > m.Second && more > 20<<20
}
