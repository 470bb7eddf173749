package ledger

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"slices"
	"time"
)

// account identifies one purse.
type account struct{ budget, who, period string }

// accountJSON is the stored form of an account: its three names.
type accountJSON = [3]string

// purse is what was spent from an account.
type purse struct {
	used int64
	told bool
}

// hold is a reservation.
type hold struct {
	amount   int64
	accounts []account
	until    time.Time
}

// entry is one stored change of the books. Amounts are in millionths of a dollar.
type entry struct {
	Op    string        `json:"op"` // take, settle, cancel, told, have
	ID    string        `json:"id,omitempty"`
	USD   int64         `json:"micros,omitempty"`
	From  []accountJSON `json:"from,omitempty"` // budget, who, period
	Until int64         `json:"until,omitempty"`
	Told  bool          `json:"told,omitempty"`
}

// book is the state of a ledger. It does no I/O, and time is an argument.
type book struct {
	purses map[account]purse
	open   map[string]*hold
}

func newBook() *book { return &book{purses: map[account]purse{}, open: map[string]*hold{}} }

// lateBy is how long after its TTL a reservation can still be settled.
const lateBy = time.Hour

// take decides an order. The caller must apply the returned entry, if there is one.
func (b *book) take(o *Order) (Taken, *entry) {
	t := Taken{Full: -1}
	e := &entry{Op: "take", USD: o.Amount, Until: o.Now.Add(o.TTL + lateBy).Unix()}
	for i := range o.Lines {
		l := &o.Lines[i]
		a := b.account(l)
		if l.LacksRoom(b.purses[a].used, o.Amount) {
			if !l.Force {
				t.Full = i
				return t, nil
			}
			t.Over = append(t.Over, i)
		}
		e.From = append(e.From, accountJSON{a.budget, a.who, a.period})
	}
	if len(b.open) >= maxOpen {
		b.forget(o.Now)
	}
	e.ID = newID()
	t.Receipt = e.ID
	return t, e
}

// account returns the account of a line. Names come from outside, so their number is bounded.
func (b *book) account(l *Account) account {
	a := account{budget: l.Budget, period: l.Period.Name}
	if !l.Each {
		return a
	}
	a.who = l.Who
	if _, known := b.purses[a]; !known && (len(b.purses) >= maxAccounts || len(a.who) > maxName) {
		a.who = others
	}
	return a
}

// mostSpent bounds what an account can count, far above what all orders together can reach.
const mostSpent = 1 << 60

// sound reports whether this package can have written the entry. Other entries are skipped like unreadable lines: an
// overflowing sum would make a spent budget look unspent.
func (e *entry) sound() bool {
	if e.Op == "have" {
		return e.USD >= 0 && e.USD <= mostSpent
	}
	return e.USD >= 0 && e.USD <= MaxMicros
}

// apply makes a change.
func (b *book) apply(e *entry) {
	if !e.sound() {
		return
	}
	switch e.Op {
	case "take":
		h := &hold{amount: e.USD, until: time.Unix(e.Until, 0)}
		for _, f := range e.From {
			a := account{f[0], f[1], f[2]}
			h.accounts = append(h.accounts, a)
			b.add(a, e.USD)
		}
		b.open[e.ID] = h
	case "settle", "cancel":
		h := b.open[e.ID]
		if h == nil {
			return
		}
		delete(b.open, e.ID)
		for _, a := range h.accounts {
			b.add(a, e.USD-h.amount)
		}
	case "told":
		for _, f := range e.From {
			a := account{f[0], f[1], f[2]}
			p := b.purses[a]
			p.told = true
			b.purses[a] = p
		}
	case "have":
		for _, f := range e.From {
			if a := (account{f[0], f[1], f[2]}); !b.has(a) { // it comes before all takes
				b.purses[a] = purse{e.USD, e.Told}
			}
		}
	}
}

func (b *book) has(a account) bool {
	_, there := b.purses[a]
	return there
}

func (b *book) add(a account, n int64) {
	p := b.purses[a]
	p.used = min(max(p.used+n, 0), mostSpent)
	b.purses[a] = p
}

// settle returns the entry that ends a reservation, or nil if there is no such reservation.
func (b *book) settle(id string, actual int64) *entry {
	h := b.open[id]
	if h == nil {
		return nil
	}
	e := &entry{Op: "settle", ID: id, USD: min(actual, MaxMicros)}
	if actual < 0 {
		e.USD = h.amount
	}
	return e
}

// forget drops what can no longer change. It drops expired reservations, which keep their estimate, and the oldest
// ones if there are too many. It also drops accounts of old periods.
func (b *book) forget(now time.Time) {
	maps.DeleteFunc(b.open, func(_ string, h *hold) bool { return h.until.Before(now) })
	if many := len(b.open) - maxOpen*3/4; many > 0 {
		ids := slices.SortedFunc(maps.Keys(b.open), func(x, y string) int { return b.open[x].until.Compare(b.open[y].until) })
		for _, id := range ids[:many] {
			delete(b.open, id)
		}
	}
	reserved := map[account]bool{}
	for _, h := range b.open {
		for _, a := range h.accounts {
			reserved[a] = true
		}
	}
	maps.DeleteFunc(b.purses, func(a account, _ purse) bool { return stale(a.period, now) && !reserved[a] })
}

// entries returns the entries that recreate the state, in a stable order.
func (b *book) entries() []entry {
	held := map[account]int64{}
	for _, h := range b.open {
		for _, a := range h.accounts {
			held[a] += h.amount
		}
	}
	var list []entry
	accounts := slices.SortedFunc(maps.Keys(b.purses), func(x, y account) int {
		return cmp.Or(cmp.Compare(x.budget, y.budget), cmp.Compare(x.period, y.period), cmp.Compare(x.who, y.who))
	})
	for _, a := range accounts {
		p := b.purses[a]
		list = append(list, entry{Op: "have", USD: p.used - held[a], From: []accountJSON{{a.budget, a.who, a.period}}, Told: p.told})
	}
	for _, id := range slices.Sorted(maps.Keys(b.open)) {
		h := b.open[id]
		e := entry{Op: "take", ID: id, USD: h.amount, Until: h.until.Unix()}
		for _, a := range h.accounts {
			e.From = append(e.From, accountJSON{a.budget, a.who, a.period})
		}
		list = append(list, e)
	}
	return list
}

// balances returns the accounts of pots.
func (b *book) balances(pots []Pot) []Balance {
	var list []Balance
	for a, p := range b.purses {
		for _, pot := range pots {
			if pot.Budget == a.budget && pot.Period.Name == a.period {
				list = append(list, Balance{pot, a.who, p.used})
			}
		}
	}
	sortBalances(list)
	return list
}

func sortBalances(list []Balance) {
	slices.SortFunc(list, func(x, y Balance) int { return cmp.Or(cmp.Compare(x.Budget, y.Budget), cmp.Compare(x.Who, y.Who)) })
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}
