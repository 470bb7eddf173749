// Package ledger keeps what was spent from budgets. Money differs from a provider's limits: requests do not wait for
// it, spending must not be forgotten, and a request belongs to the period of its grant, however late its price is
// known.
//
// A request reserves its possible cost on all of its budgets or on none. It is settled to its real cost, which may
// exceed the reservation and the budget. A request that is never settled keeps its estimate.
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
	MaxMicros   = 1 << 40 // for budgets and amounts: a little more than a million dollars
	maxAccounts = 100_000 // further ones share one account per budget
	maxOpen     = 100_000 // reservations that can still be settled
	maxName     = 256
)

// others is the owner of the shared account when there are too many accounts.
const others = "(others)"

// Pot is a budget in one period.
type Pot struct {
	Budget string
	Size   int64 // millionths of a dollar
	Each   bool  // one for each agent or user, not one for all
	Period Period
}

// Account is one pot that a request takes from.
type Account struct {
	Pot
	Who   string // the owner, if Each is set
	Force bool   // count the amount, and never refuse it
}

// LacksRoom reports whether an account of which used is spent cannot pay amount.
func (a *Account) LacksRoom(used, amount int64) bool { return used > a.Size-amount }

// Order is what a request may cost, and which budgets pay for it.
type Order struct {
	Lines  []Account
	Amount int64 // at least 1: a free request needs no order
	Now    time.Time
	TTL    time.Duration // after that, the order will not be settled
}

// Taken is the result of an order.
type Taken struct {
	// Receipt identifies the reservation, also to other processes. It is empty if the order was refused.
	Receipt string
	Full    int   // index of the line that refused it, or -1
	Over    []int // lines that were taken from although nothing was left
}

// Balance is what was spent from a pot.
type Balance struct {
	Pot
	Who  string
	Used int64 // including reservations
}

// Ledger keeps the books of budgets.
type Ledger interface {
	// Take reserves the amount on every line, or on none.
	Take(ctx context.Context, o Order) (Taken, error)
	// Settle ends a reservation at its actual cost, or at the reserved amount if actual is negative. Settling a
	// reservation that has ended is not an error.
	Settle(ctx context.Context, receipt string, actual int64, now time.Time) error
	// Cancel gives a reservation back.
	Cancel(ctx context.Context, receipt string, now time.Time) error
	// Tell reports whether this is its first call for an account in its period.
	Tell(ctx context.Context, l Account, now time.Time) (bool, error)
	// Read returns the accounts of pots that anything was taken from.
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
