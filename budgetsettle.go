package sluice

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
)

// money is what a ticket has reserved from budgets.
type money struct {
	budgets *budgets
	model   string // whose price applies to the usage
	receipt string
	guess   string        // receipt of the accounts that count the default price; empty: none
	open    bool          // nothing was stated: without usage it costs nothing
	guesses bool          // the caller's own dollars are at the default price
	order   *ledger.Order // could not be entered yet; it will be
	ended   atomic.Bool   // guards an order, which the ledger does not know yet
	passes  []Ticket      // what it has taken from budgets that slow down
}

// settle enters the actual cost of a request. A negative amount means that it is unknown. guessed is set if the amount
// is at the default price.
func (m *money) settle(r *resource, actual int64, guessed bool) error {
	return m.finish(r, lateEntry{actual: min(actual, ledger.MaxMicros), cancel: actual < 0 && m.open, guessed: guessed})
}

// cancel gives the reservation back.
func (m *money) cancel(r *resource) error { return m.finish(r, lateEntry{cancel: true}) }

func (m *money) finish(r *resource, e lateEntry) error {
	if m == nil || m.order != nil && !m.ended.CompareAndSwap(false, true) {
		return nil
	}
	b := m.budgets
	settlePasses(m.passes, &e)
	e.receipt, e.guess, e.order = m.receipt, m.guess, m.order
	if e.order != nil {
		if !e.cancel {
			b.addLate(e)
		}
		return nil
	}
	err := errAway
	if !r.observe || !r.isAway() {
		ctx, cancel := r.inBackground(context.Background())
		err = e.enter(ctx, b)
		cancel()
	}
	if err != nil && (b.goesOn || r.observe) {
		b.addLate(e)
		return nil
	}
	if err != nil {
		return b.gate.storeError(err)
	}
	return nil
}

// giveBack gives an unsent ticket back without emitting events: its grant was never reported.
func (t *Ticket) giveBack() {
	r := t.resource
	if r != nil && !t.isPlaceless() {
		ops := [1]store.Op{{Kind: store.OpCancel, ID: t.id}}
		_ = r.apply(context.Background(), ops[:]) // if this fails, the ticket expires by itself
	}
	*t = Ticket{}
}

// lateEntry is an entry that could not be made in the ledger when it happened.
type lateEntry struct {
	receipt string
	guess   string
	order   *ledger.Order
	actual  int64
	guessed bool
	cancel  bool
}

// maxLate bounds the late entries. Beyond it, charges keep their estimate or are lost.
const maxLate = 10_000

func (e *lateEntry) enter(ctx context.Context, b *budgets) error {
	now := time.Time{}
	if t, err := b.now(ctx); err == nil {
		now = t
	}
	if e.order != nil {
		o := *e.order
		o.Lines = append([]ledger.Account{}, o.Lines...)
		for i := range o.Lines {
			o.Lines[i].Force = true // the money is already spent
		}
		taken, err := b.books.Take(ctx, o)
		if err != nil {
			return err
		}
		e.order, e.receipt = nil, taken.Receipt
	}
	if e.guess != "" { // settling twice does no harm
		if err := e.end(ctx, b, e.guess, e.cancel || e.actual >= 0 && !e.guessed, now); err != nil {
			return err
		}
	}
	return e.end(ctx, b, e.receipt, e.cancel, now)
}

func (e *lateEntry) end(ctx context.Context, b *budgets, receipt string, cancel bool, now time.Time) error {
	if cancel {
		return b.books.Cancel(ctx, receipt, now)
	}
	return b.books.Settle(ctx, receipt, e.actual, now)
}

func (b *budgets) hasLate() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.late) > 0
}

func (b *budgets) addLate(e lateEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.late) < maxLate {
		b.late = append(b.late, e)
	}
}

// enterLate makes the late entries, as long as the ledger can be reached.
func (b *budgets) enterLate(ctx context.Context) {
	b.mu.Lock()
	list := b.late
	b.late = nil
	b.mu.Unlock()
	for i := range list {
		if list[i].enter(ctx, b) != nil {
			b.mu.Lock()
			b.late = append(list[i:], b.late...)
			b.late = b.late[:min(len(b.late), maxLate)]
			b.mu.Unlock()
			return
		}
	}
}

// A ticket's id carries more behind its receipt, each behind a comma: openMark, guessMark with a receipt, and the
// tickets of pacers. Earlier versions skip what they do not know.
const (
	openMark  = "z"
	guessMark = "g."
)

// text returns the reservation as it is written into the ticket's id.
func (m *money) text() string {
	if m.receipt == "" {
		return ""
	}
	s := m.receipt
	if m.open {
		s += passSep + openMark
	}
	if m.guess != "" {
		s += passSep + guessMark + m.guess
	}
	return joinPasses(s, m.passes)
}

// moneyOf is the inverse of text.
func (b *budgets) moneyOf(text, model string) *money {
	m := &money{budgets: b, model: model}
	receipt, rest, _ := strings.Cut(text, passSep)
	m.receipt = receipt
	for part := range strings.SplitSeq(rest, passSep) {
		if guess, is := strings.CutPrefix(part, guessMark); is {
			m.guess = guess
		}
		m.open = m.open || part == openMark
	}
	m.passes = b.cutPasses(rest)
	return m
}

// closePaid ends a ticket and settles what it cost.
func (t *Ticket) closePaid(spent bool, usage []Amount) error {
	usage, guessed := t.priced(usage)
	if t.money == nil {
		return t.end(spent, usage)
	}
	actual, known := usdOf(usage)
	if !known {
		actual = -1
	}
	err := errors.Join(t.end(spent, usage), t.money.settle(t.resource, actual, guessed || t.money.guesses))
	if len(usage) > 0 {
		t.money.budgets.markEnd(t.resource, t.money, usage)
	}
	return err
}
