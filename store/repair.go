package store

import "context"

// Repairer is implemented by stores whose state can be damaged from outside.
type Repairer interface {
	// Repair looks at the whole state of a pool. If it is damaged and move is set, it moves the state aside and lets the pool begin
	// anew, as after lost memory: on windows of up to 10 minutes the quota counts as spent for one window. State that can be
	// used is never moved. The error is about the store.
	Repair(ctx context.Context, pool string, move bool) (Repair, error)
}

// Repair is what [Repairer] found and did.
type Repair struct {
	At     string // the key or the file
	Damage string // what is wrong with it; empty: nothing
	Aside  string // where it is now; empty: it was not moved
}
