package store

import (
	"context"
	"strings"
)

// Repairer is implemented by stores whose state can be damaged from outside.
type Repairer interface {
	// Repair checks the whole state of a pool. If the state is damaged and move is set, Repair moves it aside and the
	// pool starts again, as after lost memory: on windows of up to 10 minutes the quota counts as spent for one window.
	// Repair never moves state that is usable. The error is about the store.
	Repair(ctx context.Context, pool string, move bool) (Repair, error)
}

// Repair is the result of [Repairer.Repair].
type Repair struct {
	What   string // "key" or "file": what At names
	At     string
	Damage string // what is wrong; empty: nothing
	Aside  string // where the state is now; empty: it was not moved
}

// RepairCommand returns the command line that repairs a pool. Stores use it as the hint of their errors.
func RepairCommand(pool string) string {
	plain := !strings.ContainsFunc(pool, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
	if !plain || pool == "" {
		pool = "'" + strings.ReplaceAll(pool, "'", `'\''`) + "'"
	}
	return "sluice repair " + pool
}
