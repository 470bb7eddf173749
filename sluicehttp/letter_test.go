package sluicehttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/provider"
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

// A body that Sluice had to decompress is kept plain, without the header that says otherwise. Any other compressed body
// is kept as it came.
func TestHeaderOfALetterDescribesItsBody(t *testing.T) {
	for _, c := range []struct {
		model, body, encoding string
	}{
		{model: "auto", body: `{"model":"other"}`},
		{model: "same", encoding: "gzip"},
	} {
		list, err := deadletter.Open(filepath.Join(t.TempDir(), "letters"))
		if err != nil {
			t.Fatal(err)
		}
		x := newRig(t)
		x.Retry = retry.Policy{Attempts: 1}
		x.Letters = &Letters{Keeper: deadletter.NewKeeper(list, nil)}
		x.Route = func(_ context.Context, _ Caller, asked *provider.ParsedRequest) (string, error) {
			return map[string]string{"auto": "other"}[asked.Model], nil
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write([]byte(`{"model":"` + c.model + `"}`))
		_ = z.Close()
		q := post(t, serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }), packed.String())
		q.Header.Set("Content-Encoding", "gzip")
		x.do(t, q)
		x.Letters.Keeper.Flush()
		entries, err := list.Entries()
		if err != nil || len(entries) != 1 {
			t.Fatalf("%+v, %v", entries, err)
		}
		if c.body == "" {
			c.body = packed.String()
		}
		if r := entries[0].Request; string(r.Body) != c.body || r.Header.Get("Content-Encoding") != c.encoding {
			t.Errorf("model %s: kept %q with the encoding %q", c.model, r.Body, r.Header.Get("Content-Encoding"))
		}
		if q.Header.Get("Content-Encoding") != "gzip" {
			t.Error("the client's header was changed")
		}
	}
}
