package ledger

import (
	"context"
	"sync"
	"time"
)

// Memory is a ledger in the memory of one process.
type Memory struct {
	mu     sync.Mutex
	book   *book
	pruned Period
}

// NewMemory returns an empty ledger.
func NewMemory() *Memory { return &Memory{book: newBook()} }

// Take implements [Ledger].
func (m *Memory) Take(_ context.Context, o Order) (Taken, error) {
	if err := o.valid(); err != nil {
		return Taken{Full: -1}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if today := Day.At(o.Now); today != m.pruned {
		m.book.forget(o.Now)
		m.pruned = today
	}
	t, e := m.book.take(&o)
	if e != nil {
		m.book.apply(e)
	}
	return t, nil
}

// Settle implements [Ledger].
func (m *Memory) Settle(_ context.Context, receipt string, actual int64, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.book.settle(receipt, actual); e != nil {
		m.book.apply(e)
	}
	return nil
}

// Cancel implements [Ledger].
func (m *Memory) Cancel(_ context.Context, receipt string, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.book.apply(&entry{Op: "cancel", ID: receipt})
	return nil
}

// Tell implements [Ledger].
func (m *Memory) Tell(_ context.Context, l Account, _ time.Time) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.book.tell(&l)
	if e != nil {
		m.book.apply(e)
	}
	return e != nil, nil
}

// Read implements [Ledger].
func (m *Memory) Read(_ context.Context, pots []Pot) ([]Balance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.book.balances(pots), nil
}

// Close implements [Ledger].
func (*Memory) Close() error { return nil }

// tell returns the entry that records a notice, or nil if there has been one.
func (b *book) tell(l *Account) *entry {
	a := b.account(l)
	if b.purses[a].told {
		return nil
	}
	return &entry{Op: "told", From: []accountJSON{{a.budget, a.who, a.period}}}
}
