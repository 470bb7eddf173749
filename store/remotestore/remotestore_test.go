package remotestore_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/remotestore"
	"github.com/sluicehq/sluice/store/storetest"
)

func anybody(*http.Request) (api.Identity, error) { return api.Identity{}, nil }

// open makes a store that is lent over HTTP.
func open(t *testing.T) storetest.Harness {
	t.Helper()
	clock := storetest.NewClock(storetest.Start)
	mem := memstore.New(memstore.WithClock(clock))
	lent := storeapi.New(storeapi.Options{Store: mem, Identify: anybody})
	server := httptest.NewServer(lent)
	s, err := remotestore.Open(context.Background(), server.URL, remotestore.WithClock(clock.Now))
	if err != nil {
		t.Fatal(err)
	}
	return storetest.Harness{
		Store: &lending{Store: s, end: func() {
			_ = lent.Close()
			server.Close()
			_ = mem.Close()
		}},
		Advance: func(d time.Duration) {
			clock.Advance(d)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			if err := s.Hear(ctx); err != nil {
				t.Error(err)
			}
		},
	}
}

// lending ends the daemon's side with the caller's.
type lending struct {
	*remotestore.Store
	end func()
}

func (l *lending) Close() error {
	err := l.Store.Close()
	l.end()
	return err
}

func openMem(*testing.T) storetest.Harness {
	clock := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(clock)), Advance: clock.Advance}
}

var _ store.Store = (*lending)(nil)

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestSameTraceSameDecisions(t *testing.T) { storetest.Differential(t, openMem, open) }
