package daemon_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/daemon"
)

const idHeader = "X-Request-Id"

// Every response of the daemon itself has an id: the client's, if it is valid.
func TestRequestIDs(t *testing.T) {
	r := begin(t, "generic", plain, nil)
	var log bytes.Buffer
	d, err := daemon.New(daemon.Options{File: r.file, Gate: r.gate, Base: r.base, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		problem      bool
	}{
		{"GET", "/healthz", false}, {"GET", "/readyz", false}, {"GET", "/", false}, {"GET", "/page/nothing", false}, {"GET", "/v1/status", false},
		{"GET", "/metrics", true}, {"GET", "/v1/nothing", true}, {"GET", "/v1/../x", true}, {"POST", "/v1/tickets", true}, {"GET", "/nowhere/x", true},
	} {
		seen := map[string]bool{}
		for given, taken := range map[string]bool{"": false, "mine-1": true, "no way": false, strings.Repeat("x", 200): false} {
			log.Reset()
			q := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, nil)
			if given != "" {
				q.Header.Set(idHeader, given)
			}
			w := httptest.NewRecorder()
			d.ServeHTTP(w, q)
			id := w.Header().Get(idHeader)
			if id == "" || taken != (id == given) || len(id) > 128 || len(w.Header()[idHeader]) != 1 || seen[id] {
				t.Errorf("%s with %q: %d %q", c.path, given, w.Code, w.Header()[idHeader])
			}
			seen[id] = true
			var out struct {
				ID string `json:"request_id"`
			}
			if !c.problem {
				continue
			}
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || out.ID != id {
				t.Errorf("%s with %q: the problem is %s, the id %s", c.path, given, w.Body, id)
			}
			if !strings.Contains(log.String(), "request_id="+id+" ") {
				t.Errorf("%s with %q: %s is not in the log: %s", c.path, given, id, &log)
			}
		}
	}
}

// A provider's response keeps the provider's ids and gets none of the gate's. A response of the gate itself has one.
func TestRequestIDsOfProviders(t *testing.T) {
	ids := http.Header{}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(idHeader) != "mine" {
			t.Errorf("the provider was told %q", r.Header[idHeader])
		}
		for name, values := range ids {
			w.Header()[name] = values
		}
	}))
	defer upstream.Close()
	r := begin(t, "generic", "resources: {api: {upstream: \"${ELSEWHERE}\"}}\n", map[string]string{"ELSEWHERE": upstream.URL})
	for _, sent := range []http.Header{{}, {idHeader: {"req_1"}}, {"Request-Id": {"req_2"}}, {idHeader: {"req_3", "req_4"}}} {
		ids = sent
		w, text := r.post("/@a/api/x", `{}`, idHeader, "mine")
		for _, name := range []string{idHeader, "Request-Id", "X-Sluice-Request-Id"} {
			if strings.Join(w.Header()[name], " ") != strings.Join(sent[name], " ") {
				t.Errorf("%v became %v: %d %s", sent, w.Header(), w.Code, text)
			}
		}
	}
	if w, text := r.post("/@a:p9/api/x", `{}`, idHeader, "mine"); w.Code != http.StatusBadRequest || w.Header().Get(idHeader) != "mine" || !strings.Contains(text, `"request_id":"mine"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), text)
	}
}
