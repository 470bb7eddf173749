package demo

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Waits between two sends of a call, as clients have them that know nothing of each other: half a second,
// doubled each time, with up to a quarter on top so that not all come back together.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = 32 * time.Second
)

// backoff is how long to wait after the n-th send, from 0, was refused: never less than the answer asks
// for. part is between 0 and 1, at random.
func backoff(n int, asked time.Duration, part float64) time.Duration {
	wait := min(longestWait, firstWait<<min(n, 10))
	wait += time.Duration(float64(wait/4) * part)
	return max(wait, asked)
}

// retryAfter is what an answer asks for, 0 if it does not say. What is longer than a minute is left out, as
// by the official clients.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil || math.IsNaN(seconds) || seconds < 0 || seconds > 60 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
