//go:build linux || darwin

package redisstore

import (
	"strconv"

	"github.com/sluicehq/sluice/store"
)

// Bury looks once for processes that have died.
func Bury(p store.Pool) { p.(*handle).state.bury() }

// ProcessName is the name of the process's file.
func ProcessName(s *Store) string { return strconv.FormatUint(s.process, 16) }
