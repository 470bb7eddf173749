package sluice

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/store"
)

// passed is the session of tickets that have no place in the store: those of requests which
// went through though the gate would have held them. Stores begin theirs at 1.
const passed = 0

// receiptSep stands before what a ticket has reserved of budgets, where it has: RESOURCE.SESSION-N~RECEIPT. No name of a
// resource has it.
const receiptSep = "~"

func passedID() store.ID { return store.ID{Session: passed, N: rand.Uint64() | 1} }

// ticketID names a ticket to people and other processes: RESOURCE.SESSION-N.
func (r *resource) ticketID(id store.ID) string {
	return fmt.Sprintf("%s.%x-%x", r.name, id.Session, id.N)
}

// Ticket returns the ticket of an id, to answer or end it: also one of another process. Whether there is
// such a ticket, the store says when it is used.
func (g *Gate) Ticket(id string) (Ticket, error) {
	id, receipt, paid := strings.Cut(id, receiptSep)
	name, rest, ok := cutLast(id, '.')
	session, n, ok2 := strings.Cut(rest, "-")
	s, err := strconv.ParseUint(session, 16, 64)
	k, err2 := strconv.ParseUint(n, 16, 64)
	if !ok || !ok2 || err != nil || err2 != nil || k == 0 {
		e := invalid("%.80q is not a ticket", id)
		e.Hint = "a ticket looks like RESOURCE.1f-2a, as it was printed when it was granted"
		return Ticket{}, e
	}
	r, err := g.resource(name)
	if err != nil {
		return Ticket{}, err
	}
	t := Ticket{resource: r, id: store.ID{Session: s, N: k}}
	if paid && g.budgets != nil {
		m := &money{budgets: g.budgets}
		m.receipt, m.model = cutReceipt(receipt)
		t.money = m
	}
	return t, nil
}

// TicketResource is the resource that the ticket of an id belongs to, empty if it is no id.
func TicketResource(id string) string {
	id, _, _ = strings.Cut(id, receiptSep)
	name, _, _ := cutLast(id, '.')
	return name
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return "", s, false
}

func (r *resource) ended(id store.ID) error {
	return &Error{
		Err: ErrEnded, Resource: r.name, Message: "ticket " + r.ticketID(id) + " has ended",
		Hint: "it was closed, or lived longer than its TTL",
	}
}

// gone says what became of a ticket that is not held any more, nil if it is.
func (r *resource) gone(id store.ID, s store.State) error {
	switch s {
	case store.Granted:
		return nil
	case store.Unknown:
		return &Error{
			Err: ErrUnknownTicket, Resource: r.name, Message: "there is no ticket " + r.ticketID(id),
			Hint: "it was never granted by this store, or so long ago that it is forgotten",
		}
	}
	return r.ended(id)
}
