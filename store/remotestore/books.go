package remotestore

import (
	"context"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// Books implements [ledger.Keeper]: the daemon keeps the budgets, unless they are in its store.
func (s *Store) Books() ledger.Ledger {
	if !s.booked {
		return nil
	}
	return &books{&s.daemon}
}

// books is the daemon's ledger.
type books struct{ daemon *transport }

var _ ledger.Ledger = (*books)(nil)

func (b *books) ask(ctx context.Context, what string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return b.daemon.ask(ctx, http.MethodPost, "/books/"+what, body, answer)
}

// Take implements [ledger.Ledger].
func (b *books) Take(ctx context.Context, o ledger.Order) (ledger.Taken, error) {
	t := ledger.Taken{Full: -1}
	return t, b.ask(ctx, "take", &o, &t)
}

// Settle implements [ledger.Ledger].
func (b *books) Settle(ctx context.Context, receipt string, actual int64, now time.Time) error {
	return b.ask(ctx, "settle", &wire.Settle{Receipt: receipt, Actual: actual, Now: now}, nil)
}

// Cancel implements [ledger.Ledger].
func (b *books) Cancel(ctx context.Context, receipt string, now time.Time) error {
	return b.ask(ctx, "cancel", &wire.Settle{Receipt: receipt, Now: now}, nil)
}

// Tell implements [ledger.Ledger].
func (b *books) Tell(ctx context.Context, l ledger.Account, now time.Time) (bool, error) {
	var t wire.Told
	err := b.ask(ctx, "tell", &wire.Tell{Line: l, Now: now}, &t)
	return t.First, err
}

// Read implements [ledger.Ledger].
func (b *books) Read(ctx context.Context, pots []ledger.Pot) ([]ledger.Balance, error) {
	var all wire.Balances
	err := b.ask(ctx, "read", &wire.Read{Pots: pots}, &all)
	return all.Balances, err
}

// Close implements [ledger.Ledger]. It does nothing: the books belong to the daemon.
func (b *books) Close() error { return nil }
