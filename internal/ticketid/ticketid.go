// Package ticketid knows how the id of a ticket is written: RESOURCE.SESSION-N, and ~RECEIPT behind it where the ticket has
// reserved something of a budget.
package ticketid

import "strings"

// ReceiptSep stands before what a ticket has reserved of budgets. No name of a resource has it.
const ReceiptSep = "~"

// ObservedMark stands before the session of a ticket that was granted in mode observe. That mode has its own pool, and the
// pool its own numbers.
const ObservedMark = "o"

// IsObserved reports whether the ticket of an id was granted in mode observe.
func IsObserved(id string) bool {
	_, rest, ok := Cut(id)
	return ok && strings.HasPrefix(rest, ObservedMark)
}

// Resource is the resource that the ticket of an id belongs to, empty if it is no id.
func Resource(id string) string {
	name, _, _ := Cut(id)
	return name
}

// Cut splits an id at the resource, the last dot before the receipt.
func Cut(id string) (resource, rest string, ok bool) {
	id, _, _ = strings.Cut(id, ReceiptSep)
	if i := strings.LastIndexByte(id, '.'); i >= 0 {
		return id[:i], id[i+1:], true
	}
	return "", id, false
}
