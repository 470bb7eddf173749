package logstore

import "time"

// timer calls a function once, some time after it was last reset.
type timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// afterFunc is [time.AfterFunc].
func afterFunc(d time.Duration, f func()) timer { return time.AfterFunc(d, f) }
