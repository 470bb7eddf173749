//go:build !linux

package logstore

import "time"

// uptime returns a time that advances also while the machine sleeps.
func uptime() time.Duration { return sinceStart() }
