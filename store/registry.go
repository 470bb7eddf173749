package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Errors of a store as a whole.
var (
	ErrClosed      = errors.New("store is closed")
	ErrUnavailable = errors.New("store is unreachable or damaged")
	// ErrKept marks a batch that failed but is not lost: the store keeps its answers, closes and cancels, and applies
	// them once it is reachable again. See [Kept].
	ErrKept = errors.New("the store keeps what it was told")
)

// Kept wraps err so that it matches [ErrKept] too. The text stays the same.
func Kept(err error) error { return &keptError{err} }

type keptError struct{ error }

func (e *keptError) Is(target error) bool { return target == ErrKept }
func (e *keptError) Unwrap() error        { return e.error }

// Opener opens the store at a URL. Its scheme is the one the opener was registered for.
type Opener func(ctx context.Context, url string) (Store, error)

var (
	openersMu sync.RWMutex
	openers   = map[string]Opener{}
)

// Register makes a store implementation available under a URL scheme. Call it from an init function. It panics if the
// scheme is already registered.
func Register(scheme string, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	if _, taken := openers[scheme]; taken {
		panic("store: scheme registered twice: " + scheme)
	}
	openers[scheme] = open
}

// Open opens the store at url, such as "mem:".
func Open(ctx context.Context, url string) (Store, error) {
	scheme, _, ok := strings.Cut(url, ":")
	openersMu.RLock()
	open, known := openers[scheme]
	names := slices.Sorted(maps.Keys(openers))
	openersMu.RUnlock()
	if !ok || !known {
		return nil, fmt.Errorf("store %.20q: unknown scheme, known are %q (is the package that registers it imported?)", scheme+":", names) // the rest may hold a password
	}
	return open(ctx, url)
}

// As finds an optional interface of a store, such as [Shelf]. It looks at the store itself, then at the stores that it
// wraps and returns from a method Unwrap.
func As[T any](st Store) (t T, ok bool) {
	for st != nil {
		if t, ok = st.(T); ok {
			return t, true
		}
		u, wraps := st.(interface{ Unwrap() Store })
		if !wraps {
			return t, false
		}
		st = u.Unwrap()
	}
	return t, false
}
