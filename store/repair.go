package store

import (
	"context"
	"strings"
)

// Repairer is implemented by stores whose state can be damaged from outside.
type Repairer interface {
	// Repair looks at the whole state of a pool. If it is damaged and move is set, it moves the state aside and lets the pool begin
	// anew, as after lost memory: on windows of up to 10 minutes the quota counts as spent for one window. State that can be
	// used is never moved. The error is about the store.
	Repair(ctx context.Context, pool string, move bool) (Repair, error)
}

// Repair is what [Repairer] found and did.
type Repair struct {
	What   string // "key" or "file": what At names
	At     string
	Damage string // what is wrong with it; empty: nothing
	Aside  string // where it is now; empty: it was not moved
}

// RepairCommand is the command line that repairs a pool. Stores give it as the hint of their errors.
func RepairCommand(pool string) string {
	plain := !strings.ContainsFunc(pool, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
	if !plain || pool == "" {
		pool = "'" + strings.ReplaceAll(pool, "'", `'\''`) + "'"
	}
	return "sluice repair " + pool
}
