package redisstore

import "github.com/sluicehq/sluice/store"

// SetTime replaces the server's clock in stamps.
func (e *Engine) SetTime(now func() store.Time) { e.time = now }
