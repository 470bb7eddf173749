package sluice_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
)

// FuzzTicket reads any text as the id of a ticket. An id that is taken is that of a known resource, and reads the same from what it prints.
func FuzzTicket(f *testing.F) {
	g, err := sluice.Open(f.Context(), sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{places(1)}}, "a.b": {Limits: []sluice.Limit{places(1)}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = g.Close() })
	for _, id := range []string{"api.1f-2a", "a.b.1-1", "api.o1f-2a", "api.1f-0", "api.-1", "other.1-1", "api.1f-2a~abc", "api.1f-2a~abc~bW9kZWw", "api.1f-2a~.x.y.1.2", "api.ffffffffffffffff-ffffffffffffffff", "api.10000000000000000-1", ""} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		ticket, err := g.Ticket(id)
		if err != nil {
			return
		}
		text := ticket.ID()
		if !strings.HasPrefix(text, "api.") && !strings.HasPrefix(text, "a.b.") {
			t.Errorf("%q is %q", id, text)
		}
		if again, err := g.Ticket(text); err != nil || again.ID() != text {
			t.Errorf("%q is %q, and that is %q (%v)", id, text, again.ID(), err)
		}
	})
}
