// Package ledger keeps what was spent of budgets. Money differs from a provider's limits: nobody waits for it, what
// was spent must not be forgotten, and a request belongs to the period in which it was let go, however late its
// price becomes known.
//
// A request reserves what it may cost on all of its budgets or on none, and is settled to what it did cost, which
// may be more than was reserved and more than there is. One of which nothing more is heard keeps its estimate.
//
// [Memory] keeps the books of one process, [Dir] those of a machine in a file of their own, and [InStore] those of
// many machines in the store that they share.
package ledger

import (
	"context"
	"errors"
	"time"
)

// Bounds.
const (
	MaxMicros   = 1 << 40 // of a budget and of an amount: a little more than a million dollars
	maxAccounts = 100_000 // those beyond share one for each budget
	maxOpen     = 100_000 // reservations that can still be settled
	maxName     = 256
)

// others is whose account it is once there are too many.
const others = "(others)"

// Pot is a budget in one period.
type Pot struct {
	Budget string
	Size   int64 // millionths of a dollar
	Each   bool  // there is one for each agent or user, not one for all
	Period Period
}

// Line is one pot that a request takes from.
type Account struct {
	Pot
	Who   string // where each has its own
	Force bool   // what is taken is counted, and never refused
}

// Order is what a request may cost, and of which budgets.
type Order struct {
	Lines  []Account
	Amount int64 // at least 1: one that costs nothing for certain needs no order
	Now    time.Time
	TTL    time.Duration // after which nothing more will be heard of it
}

// Taken is what became of an order.
type Taken struct {
	// Receipt names the reservation, also to other processes. Empty: it was refused.
	Receipt string
	Full    int   // the line that refused it, -1 if none did
	Over    []int // lines that were taken from although nothing was left
}

// Balance is what was spent of a pot.
type Balance struct {
	Pot
	Who  string
	Used int64 // with what is reserved
}

// Ledger keeps books.
type Ledger interface {
	// Take reserves the amount on every line, or on none.
	Take(ctx context.Context, o Order) (Taken, error)
	// Settle ends a reservation: it did cost actual, or what was reserved if that is negative. One that has ended is
	// no error.
	Settle(ctx context.Context, receipt string, actual int64, now time.Time) error
	// Cancel gives a reservation back.
	Cancel(ctx context.Context, receipt string, now time.Time) error
	// Tell reports whether this is the first time that it is called for an account in its period.
	Tell(ctx context.Context, l Account, now time.Time) (bool, error)
	// Read returns the accounts of pots in which anything was taken.
	Read(ctx context.Context, pots []Pot) ([]Balance, error)
	Close() error
}

var (
	errAmount = errors.New("an amount of money is out of range")
	errClosed = errors.New("the ledger is closed")
)

func (o *Order) valid() error {
	if o.Amount < 1 || o.Amount > MaxMicros {
		return errAmount
	}
	return nil
}
