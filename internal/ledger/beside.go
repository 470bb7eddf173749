package ledger

import (
	"path/filepath"

	"github.com/sluicehq/sluice/store"
)

// Keeper is implemented by stores that lead to a ledger somewhere else.
type Keeper interface {
	// Books returns it, nil if there is none.
	Books() Ledger
}

// Beside returns the ledger that belongs to a store but is not in it: that of a daemon for those who use its store; one of the process
// for a store that is gone with it, the same for all gates on it; one in a directory where pools are files, for those are a cache. It is
// nil for all other stores: they keep it themselves.
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
