package sluicehttp

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/retry"
)

// Which requests are kept, and which are not.
func TestWhatIsGivenUpIsKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int    // 0: the connection breaks
		most   int64  // of a body
		leaves bool   // the client, before it is answered
		reason string // empty: it is not kept
		lost   bool   // its body
	}{
		{name: "ok", status: 200},
		{name: "not found", status: 404},
		{name: "error", status: 500, reason: "error (status 500)"},
		{name: "long", status: 500, most: 3, reason: "error (status 500)", lost: true},
		{name: "no answer", reason: "no answer: "},
		{name: "client gone", leaves: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := deadletter.Open(filepath.Join(t.TempDir(), "letters"))
			if err != nil {
				t.Fatal(err)
			}
			x := newRig(t)
			x.Retry = retry.Policy{Attempts: 1}
			x.Caller = Caller{Agent: "a"}
			x.Letters = &Letters{Keeper: deadletter.NewKeeper(list, nil), MaxBody: c.most, Base: "/base", Secrets: []string{"X-Mine"}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				switch {
				case c.leaves:
					cancel()
					<-r.Context().Done()
				case c.status == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(c.status)
				}
			})
			q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/base/x?y=1", strings.NewReader("canary"))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("X-Mine", "secret-of-mine")
			if resp, err := x.RoundTrip(q); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			x.Letters.Keeper.Flush()
			entries, err := list.Entries()
			if err != nil || len(entries) > 1 || (len(entries) == 1) != (c.reason != "") {
				t.Fatalf("%+v, %v", entries, err)
			}
			if len(entries) == 0 {
				return
			}
			e := entries[0]
			r := e.Request
			if !strings.HasPrefix(e.Reason, c.reason) || e.Agent != "a" || e.Attempts != 1 || r.Path != "/x?y=1" || r.Header.Get("X-Mine") != "" || len(r.Answers) != 1 || r.Answers[0].Status != c.status {
				t.Errorf("%+v, %+v", e, r)
			}
			if c.lost != (r.Lost != "") || c.lost == (r.Body == "canary") {
				t.Errorf("the body %q, lost %q", r.Body, r.Lost)
			}
		})
	}
}
