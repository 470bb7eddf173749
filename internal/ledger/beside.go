package ledger

import (
	"path/filepath"

	"github.com/sluicehq/sluice/store"
)

// Keeper is implemented by stores whose ledger is somewhere else.
type Keeper interface {
	// Books returns the ledger, or nil if there is none.
	Books() Ledger
}

// Beside returns the ledger that belongs to a store but is not in it. For a client of a daemon it is the daemon's.
// For a store in memory it is one in the process, shared by all gates on that store. For a file store it is in a
// directory, because the pools there are a cache. It is nil for all other stores: they hold the ledger themselves.
func Beside(st store.Store, look bool) Ledger {
	if k, ok := store.As[Keeper](st); ok {
		return k.Books()
	}
	if s, ok := store.As[store.Shelf](st); ok {
		books, _ := s.Keep("budgets", NewMemory()).(Ledger)
		return books
	}
	if h, ok := store.As[store.Home](st); ok {
		return NewDir(filepath.Join(h.Dir(), "budgets"), look)
	}
	return nil
}
