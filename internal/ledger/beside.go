package ledger

import (
	"strings"

	"github.com/sluicehq/sluice/store"
)

// Keeper is implemented by stores that lead to a ledger somewhere else.
type Keeper interface {
	// Books returns it, nil if there is none.
	Books() Ledger
}

// Beside returns the ledger that belongs to a store but is not in it: that of a daemon for those who use its store; one of the process
// for a store in memory, the same for all gates on it; one in a directory where pools are files, for those are a cache. It is nil for all
// other stores: they keep it themselves.
func Beside(url string, st store.Store, look bool) (Ledger, error) {
	if k, ok := store.As[Keeper](st); ok {
		return k.Books(), nil
	}
	switch scheme, _, _ := strings.Cut(url, ":"); scheme {
	case "mem":
		var books Ledger = NewMemory()
		if s, ok := store.As[store.Shelf](st); ok {
			books, _ = s.Keep("budgets", books).(Ledger)
		}
		return books, nil
	case "file":
		dir, err := DirOf(url)
		if err != nil {
			return nil, err
		}
		return NewDir(dir, look), nil
	}
	return nil, nil //nolint:nilnil // there is none, and nothing is wrong
}
