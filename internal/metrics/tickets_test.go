package metrics

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// Events that carry only a ticket's id count for the class that took the ticket, and count once.
func TestClosedByID(t *testing.T) {
	r, g := open(t, sluice.Config{Resources: api(hourly(10))})
	id := acquire(t, g, sluice.Request{Agent: "a", Class: sluice.P1, Retry: true}).ID()
	usage := []sluice.Amount{{Unit: "input_tokens", N: 40}, {Unit: sluice.USD, N: 2_000_000}}
	for range 3 {
		tk, err := g.Ticket(id)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tk.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
			t.Logf("answered again: %v", err)
		}
		if err := tk.Close(usage...); err != nil {
			t.Fatal(err)
		}
	}
	body := scrape(t, r)
	has(t, body, `sluice_tokens_total{class="p1",kind="input",resource="api"} 40`, `sluice_cost_dollars_total{basis="usage",class="p1",resource="api"} 2`,
		`sluice_retry_cost_dollars_total{class="p1",resource="api"} 2`)
	hasNot(t, body, `sluice_tokens_total{class="unknown"`, `sluice_answers_total{class="unknown"`)
}

// A ticket of another process has an unknown class, and counts once as well.
func TestClosedByIDOfAnother(t *testing.T) {
	r := New(Options{})
	for range 2 {
		r.Event(inspect.Event{Kind: inspect.EventUsage, Resource: "api", Ticket: "api.7-1", Units: map[string]int64{"tokens": 5}})
	}
	r.Event(inspect.Event{Kind: inspect.EventUsage, Resource: "api", Ticket: "api.7-2", Units: map[string]int64{"tokens": 5}})
	has(t, scrape(t, r), `sluice_tokens_total{class="unknown",kind="any",resource="api"} 10`)
}

// The memory for tickets is bounded, and the newest stay.
func TestTicketsAreForgotten(t *testing.T) {
	var k tickets
	for i := range maxTickets + 100 {
		k.note(&inspect.Event{Ticket: fmt.Sprint("api.1-", i), Class: "p1"})
	}
	if k.all.Len() != maxTickets {
		t.Errorf("%d tickets, want %d", k.all.Len(), maxTickets)
	}
	class := func(i int) string {
		e := inspect.Event{Ticket: fmt.Sprint("api.1-", i)}
		k.fill(&e, false)
		return e.Class
	}
	if class(99) != "" || class(100) != "p1" || class(maxTickets+99) != "p1" {
		t.Errorf("remembered: %q %q %q", class(99), class(100), class(maxTickets+99))
	}
}
