package eventlog

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"

	_ "github.com/sluicehq/sluice/store/memstore"
)

// A request that does not reach the provider is one failed request: in the log alone as in the store's report that the log
// completes, whether its ticket was answered, given back or never asked for.
func TestUnreachableSendsCountOnce(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	unreached := sluice.Answer{Verdict: store.VerdictUnreachable, Err: refused}
	for name, send := range map[string]func(t *testing.T, g *sluice.Gate, req sluice.Request){
		"Do": func(t *testing.T, g *sluice.Gate, req sluice.Request) {
			if err := g.Do(t.Context(), req, func(context.Context, sluice.Ticket) (sluice.Answer, error) {
				return sluice.Answer{Verdict: store.VerdictError}, refused
			}); err == nil {
				t.Error("no error")
			}
		},
		"answered": func(t *testing.T, g *sluice.Gate, req sluice.Request) {
			ticket := acquired(t, g, req)
			if _, err := ticket.Answer(unreached); err != nil {
				t.Error(err)
			}
			if err := ticket.Close(); err != nil {
				t.Error(err)
			}
		},
		"answered by another process": func(t *testing.T, g *sluice.Gate, req sluice.Request) {
			ticket, err := g.Ticket(acquired(t, g, req).ID())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ticket.Answer(unreached); err != nil {
				t.Error(err)
			}
			if err := ticket.Close(); err != nil {
				t.Error(err)
			}
		},
		"given back": func(t *testing.T, g *sluice.Gate, req sluice.Request) {
			ticket := acquired(t, g, req)
			if err := ticket.Cancel(); err != nil {
				t.Error(err)
			}
			if err := g.Observe(t.Context(), req, unreached); err != nil {
				t.Error(err)
			}
		},
		"closed": func(t *testing.T, g *sluice.Gate, req sluice.Request) {
			ticket := acquired(t, g, req)
			if err := ticket.CloseUnanswered(); err != nil {
				t.Error(err)
			}
			if err := g.Observe(t.Context(), req, unreached); err != nil {
				t.Error(err)
			}
		},
		"no ticket": func(t *testing.T, g *sluice.Gate, req sluice.Request) {
			if err := g.Observe(t.Context(), req, unreached); err != nil {
				t.Error(err)
			}
		},
	} {
		for _, observe := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", observed"}[observe], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now().Add(-time.Minute)
					var events []inspect.Event
					g, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Events: func(e inspect.Event) { events = append(events, e) },
						Retry: retry.Policy{Attempts: 1},
						Resources: map[string]sluice.Resource{"api": {Observe: observe, Limits: []sluice.Limit{
							{Name: "requests", Size: 100, Window: time.Minute, Kind: store.Rolling},
						}}}})
					if err != nil {
						t.Fatal(err)
					}
					defer g.Close()
					send(t, g, sluice.Request{Resource: "api", Agent: "a"})
					whole, err := g.Report(t.Context(), began)
					if err != nil {
						t.Fatal(err)
					}
					dir := keep(t, events...)
					if err := Complete(&whole, dir, began); err != nil {
						t.Fatal(err)
					}
					alone, err := Report(dir, began)
					if err != nil {
						t.Fatal(err)
					}
					for what, rep := range map[string]*inspect.Report{"whole": &whole, "alone": &alone} {
						if len(rep.Resources) != 1 {
							t.Errorf("%s: %+v", what, rep)
							continue
						}
						total, a := rep.Resources[0].Total, caller(t, &rep.Resources[0], "a")
						if total.Failed != 1 || a.Failed != 1 {
							t.Errorf("%s: %d failed, %d of the caller, want 1", what, total.Failed, a.Failed)
						}
					}
					if w, a := whole.Resources[0].Total, alone.Resources[0].Total; w.FirstSends+w.Retries != a.FirstSends+a.Retries {
						t.Errorf("sends: %d, and %d by the log alone", w.FirstSends+w.Retries, a.FirstSends+a.Retries)
					}
				})
			})
		}
	}
}

func acquired(t *testing.T, g *sluice.Gate, req sluice.Request) sluice.Ticket {
	t.Helper()
	ticket, err := g.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}
