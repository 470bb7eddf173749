//go:build linux

package canary_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/eventlog"
	providers "github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/sluicehttp"
	_ "github.com/sluicehq/sluice/store/filestore"
)

// quoting are answers that errors of net/http quote.
var quoting = []string{"no-key", "no-http", "bad-length"}

// The transport of Go programs writes no key: not to the store, to events and to what Done is told. Errors of net/http itself, which may
// quote a malformed response, go to the caller alone.
func TestTransport(t *testing.T) {
	t.Parallel()
	up := provider(t)
	r := newRig(t, "")
	dir := filepath.Join(r.dir, "state")
	events := eventlog.Open(dir)
	dialect, ok := providers.Lookup("anthropic")
	if !ok {
		t.Fatal("there is no such dialect")
	}
	limits := []sluice.Limit{{Name: "hour", Kind: sluice.Rolling, Size: 1000, Window: time.Hour}}
	resources := map[string]sluice.Resource{}
	names := append(slices.Sorted(maps.Keys(answers)), "gone")
	for _, name := range names {
		resources[name] = sluice.Resource{Limits: limits, SplitKeys: true}
	}
	gate, err := sluice.Open(t.Context(), sluice.Config{Store: "file:" + dir, Resources: resources, Events: events.Add})
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + closedPort(t)
	var all sync.WaitGroup
	for _, name := range names {
		for i, h := range headers {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // some never get an answer
				defer cancel()
				tr := &sluicehttp.Transport{
					Gate: gate, Resource: name, Dialect: dialect, Limits: limits, Caller: sluicehttp.Caller{Agent: fmt.Sprint("agent-", i)},
					Retry: retry.Policy{Attempts: 2, Base: time.Millisecond, Cap: 2 * time.Millisecond},
					Done: func(e sluicehttp.Exchange) {
						e.Err = nil
						r.say("Done of "+name, fmt.Appendf(nil, "%+v", e))
					},
				}
				defer tr.CloseIdleConnections()
				at := up.URL + "/" + name
				if name == "gone" {
					at = gone
				}
				q, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1/messages?key="+planted("Query"), strings.NewReader(call))
				if err != nil {
					t.Error(err)
					return
				}
				q.Header = h.Clone()
				resp, err := tr.RoundTrip(q)
				if err != nil {
					if !slices.Contains(quoting, name) {
						r.say("the error for "+name, []byte(err.Error()))
					}
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			})
		}
	}
	all.Wait()
	status, err := gate.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("status", "status", status)
	r.say("the status", log.Bytes())
	if err := gate.Close(); err != nil {
		t.Error(err)
	}
	if err := events.Close(); err != nil {
		t.Error(err)
	}
	r.search(10)
}
