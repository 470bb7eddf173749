//go:build !linux

package redisstore

import "time"

// uptime is time that passes, also while the machine sleeps.
func uptime() time.Duration { return sinceStart() }
