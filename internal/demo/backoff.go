package demo

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Waits between two sends of a call, as in clients that do not coordinate: half a second, doubled each time. Up to a
// quarter is added at random, so that the clients do not all return at the same time.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = 32 * time.Second
)

// backoff returns how long to wait after the n-th send, counted from 0, was refused. It never returns less than asked.
// part is random between 0 and 1.
func backoff(n int, asked time.Duration, part float64) time.Duration {
	wait := min(longestWait, firstWait<<min(n, 10))
	wait += time.Duration(float64(wait/4) * part)
	return max(wait, asked)
}

// retryAfter returns the Retry-After of a response, or 0 if there is none. It ignores values above a minute, as the
// official clients do.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > 60 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
