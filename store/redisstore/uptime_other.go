//go:build !linux

package redisstore

import "time"

// uptime returns a time that advances also while the machine sleeps.
func uptime() time.Duration { return sinceStart() }
