//go:build linux || darwin

package sdk_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// witness is a provider that remembers what it was sent.
type witness struct {
	mu   sync.Mutex
	sent []string
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	text := fmt.Sprintf("%s %s %s\nHost: %s\n", r.Method, r.RequestURI, r.Proto, r.Host)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if name != "X-Sluice-Via" { // as it is on this machine, it may be another gate: docs/sdks.md
			text += name + ": " + strings.Join(r.Header[name], " | ") + "\n"
		}
	}
	text += fmt.Sprintf("\n%s\n%v", body, err)
	w.mu.Lock()
	w.sent = append(w.sent, text)
	w.mu.Unlock()
	out.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(out, "{}")
}

// take returns what was sent since.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}

// TestSentAsItIs: what the provider gets through the gate is what the client sent. The client names itself, and says that it closes the
// connection: that is for the gate alone.
func TestSentAsItIs(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		w := &witness{}
		server := httptest.NewServer(w)
		t.Cleanup(server.Close)
		r := begin(t, c, setup{upstream: server.URL + "/below"})
		var requests []rawRequest
		for _, q := range rawRequests[c.script] {
			if _, odd := q.Headers["X-Mock"]; !odd {
				q.Headers = maps.Clone(q.Headers)
				q.Headers["X-Own"], q.Headers["User-Agent"] = "as it is", "nobody's"
				requests = append(requests, q)
			}
		}
		r.raw(server.URL+"/below", "1.1", requests)
		without := w.take()
		for i := range requests {
			requests[i].Headers["X-Sluice-Agent"], requests[i].Headers["X-Sluice-Class"] = "somebody", "p1"
		}
		r.raw(strings.Replace(r.gate, "/@sdk", "", 1), "1.1", requests)
		with := w.take()
		if len(with) != len(without) {
			t.Fatalf("%d were sent on, not %d", len(with), len(without))
		}
		for i := range without {
			want := strings.Replace(without[i], "Connection: close\n", "", 1)
			if a, b := firstDifference(want, with[i]); a != b {
				t.Errorf("%s: through the gate it is\n%s\nand without it\n%s", requests[i].Path, b, a)
			}
		}
	})
}
