package sluice

import (
	"context"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
)

// BreakBooks makes the ledger of a gate fail to give anything back.
func (g *Gate) BreakBooks(err error) { g.budgets.books = brokenBooks{g.budgets.books, err} }

type brokenBooks struct {
	ledger.Ledger
	err error
}

func (b brokenBooks) Cancel(context.Context, string, time.Time) error { return b.err }

// Kill ends the heartbeats and nothing else, as when the process dies.
func (l *Lease) Kill() {
	if was, _ := l.gate.fleet.remove(l); was {
		l.stop()
		<-l.done
	}
}

var InWords = inWords

// StoreOf returns the store of a gate.
func StoreOf(g *Gate) store.Store { return g.store }
