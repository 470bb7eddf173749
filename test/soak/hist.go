package main

import (
	"math/bits"
	"sync"
	"time"
)

// Times are counted in buckets, 64 for each doubling. So every figure is at most 2% off.
const (
	perDoubling = 64
	shift       = 6
)

// hist is a histogram of the duration of calls.
type hist struct {
	mu      sync.Mutex
	buckets [64 * perDoubling]uint64
	n       uint64
	max     time.Duration
}

func (h *hist) add(d time.Duration) {
	d = max(d, 0)
	h.mu.Lock()
	h.buckets[bucketOf(uint64(d/time.Microsecond))]++
	h.n++
	h.max = max(h.max, d)
	h.mu.Unlock()
}

// bucketOf returns the bucket of a time. It is exact below 64 us.
func bucketOf(us uint64) int {
	if us < perDoubling {
		return int(us)
	}
	e := bits.Len64(us) - shift - 1
	return (e+1)*perDoubling + int(us>>e) - perDoubling
}

// upTo returns the largest time in a bucket.
func upTo(bucket int) time.Duration {
	if bucket < perDoubling {
		return time.Duration(bucket) * time.Microsecond
	}
	e := bucket/perDoubling - 1
	us := (uint64(bucket%perDoubling+perDoubling)+1)<<e - 1
	return time.Duration(us) * time.Microsecond
}

// at returns the time that the given part of all calls did not exceed.
func (h *hist) at(part float64) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	want, seen := uint64(part*float64(h.n)), uint64(0)
	for b, n := range h.buckets {
		if seen += n; seen > want || seen == h.n && seen > 0 {
			return min(upTo(b), h.max)
		}
	}
	return 0
}

// Figures are the figures of a histogram, for output.
type Figures struct {
	N     uint64 `json:"n"`
	P50   int64  `json:"p50_us"`
	P99   int64  `json:"p99_us"`
	P999  int64  `json:"p999_us"`
	Worst int64  `json:"max_us"`
}

func (h *hist) figures() Figures {
	return Figures{
		N: h.n, P50: h.at(0.5).Microseconds(), P99: h.at(0.99).Microseconds(), P999: h.at(0.999).Microseconds(), Worst: h.max.Microseconds(),
	}
}
