package wire

import (
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
)

// The requests to a daemon's books, under /v1/store/books. They mirror the methods of [ledger.Ledger].

// Settle ends a reservation, or gives it back.
type Settle struct {
	Receipt string    `json:"receipt"`
	Actual  int64     `json:"actual"`
	Now     time.Time `json:"now"`
}

// Tell asks whether this is the first notice for an account.
type Tell struct {
	Line ledger.Account `json:"line"`
	Now  time.Time      `json:"now"`
}

// Told is the answer to Tell.
type Told struct {
	First bool `json:"first"`
}

// Read asks for the balances of pots.
type Read struct {
	Pots []ledger.Pot `json:"pots"`
}

// Balances is the answer to Read.
type Balances struct {
	Balances []ledger.Balance `json:"balances"`
}
