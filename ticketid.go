package sluice

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/ticketid"
	"github.com/sluicehq/sluice/store"
)

// passed is the session of tickets that the store does not know: requests that went through although the gate would
// have held them. Sessions of stores begin at 1.
const passed = 0

func passedID() store.ID { return store.ID{Session: passed, N: rand.Uint64() | 1} }

// ticketID returns the name of a ticket for people and other processes: RESOURCE.SESSION-N, or RESOURCE.oSESSION-N.
func (r *resource) ticketID(id store.ID) string {
	return Ticket{resource: r, id: id, observed: r.observe}.name()
}

// name returns the ticket's id without its reservations, for events.
func (t Ticket) name() string {
	mark := ""
	if t.observed {
		mark = ticketid.ObservedMark
	}
	return fmt.Sprintf("%s.%s%x-%x", t.resource.name, mark, t.id.Session, t.id.N)
}

// isForeign reports whether the ticket was granted in the resource's other mode, before a switch. It is in another
// pool. In this pool there is nothing to end, and its answer causes no pause.
func (t *Ticket) isForeign() bool { return t.observed != t.resource.observe && t.id.Session != passed }

// isPlaceless reports whether the ticket is not in the resource's pool.
func (t *Ticket) isPlaceless() bool { return t.id.Session == passed || t.isForeign() }

// Ticket returns the ticket with the given id, to answer or end it. The ticket may be from another process. The store
// reports an unknown ticket when it is used.
func (g *Gate) Ticket(id string) (Ticket, error) {
	id, receipt, paid := strings.Cut(id, ticketid.ReceiptSep)
	name, rest, ok := ticketid.Cut(id)
	rest, observed := strings.CutPrefix(rest, ticketid.ObservedMark)
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
	t := Ticket{resource: r, id: store.ID{Session: s, N: k}, observed: observed}
	receipt, model := cutReceipt(receipt)
	switch {
	case paid && receipt != "" && g.budgets != nil:
		t.money = g.budgets.moneyOf(receipt, model)
	case model != "":
		t.note = &note{req: Request{Priced: model}}
	}
	return t, nil
}

func (r *resource) ended(id store.ID) error {
	return &Error{
		Err: ErrEnded, Resource: r.name, Message: "ticket " + r.ticketID(id) + " has ended",
		Hint: "it was closed, or lived longer than its TTL",
	}
}

// gone returns an error if a ticket is no longer held, and nil if it is.
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
