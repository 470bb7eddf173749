package wire

import (
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
)

// What is asked of a daemon's books, under /v1/store/books: the methods of [ledger.Ledger].

// Settle ends a reservation, or gives it back.
type Settle struct {
	Receipt string    `json:"receipt"`
	Actual  int64     `json:"actual"`
	Now     time.Time `json:"now"`
}

// Tell asks whether an account is told of for the first time.
type Tell struct {
	Line ledger.Account `json:"line"`
	Now  time.Time      `json:"now"`
}

// Told is the answer.
type Told struct {
	First bool `json:"first"`
}

// Read asks for accounts.
type Read struct {
	Pots []ledger.Pot `json:"pots"`
}

// Balances are they.
type Balances struct {
	Balances []ledger.Balance `json:"balances"`
}
