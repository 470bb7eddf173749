//go:build linux || darwin

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// arrivals is what a provider sees.
type arrivals struct {
	mu sync.Mutex
	at []time.Time
}

func (a *arrivals) ServeHTTP(http.ResponseWriter, *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, time.Now())
}

func (a *arrivals) most(window time.Duration) (most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := 0
	for i := range a.at {
		for a.at[i].Sub(a.at[from]) >= window {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.StatusCode, string(text)
}

// becomes polls until the response has this status.
func becomes(t *testing.T, url string, want int) string {
	t.Helper()
	for end := time.Now().Add(proctest.Patience); ; time.Sleep(50 * time.Millisecond) {
		got, text := get(t, url)
		if got == want {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s still answers %d %s, want %d", url, got, text, want)
		}
	}
}

// A daemon whose state directory disappears recovers by itself, and the provider sees no more than its limit. If the
// directory cannot be created again, the daemon reports that it is unhealthy until it can.
func TestADaemonWhoseStateDirectoryDisappears(t *testing.T) {
	t.Parallel()
	const limit, window = 5, 2 * time.Second
	var seen arrivals
	provider := httptest.NewServer(&seen)
	defer provider.Close()
	file, parent := filepath.Join(t.TempDir(), "sluice.yaml"), filepath.Join(t.TempDir(), "parent")
	text := "resources: {api: {upstream: " + provider.URL + ", limits: [{name: l, size: 5/2s, kind: rolling}]}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(parent, "state")
	_, urls := listening(t, "--config", file, "--listen", "127.0.0.1:0", "--store", "file:"+state)
	api, health := urls[0]+"/@a/api/", urls[0]+"/healthz"
	for range limit {
		if got, text := get(t, api); got != http.StatusOK {
			t.Fatal(got, text)
		}
	}
	// The daemon may write a file into the directory while a removal lists it.
	for end := time.Now().Add(proctest.Patience); ; {
		err := os.RemoveAll(state)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	for range limit + 1 {
		becomes(t, api, http.StatusOK)
		if got, text := get(t, health); got != http.StatusOK {
			t.Errorf("/healthz answers %d %s", got, text)
		}
	}
	if most := seen.most(window); most > limit {
		t.Errorf("the provider saw %d requests in %v, its limit is %d", most, window, limit)
	}

	// The daemon may make the directory anew between the two.
	for end := time.Now().Add(proctest.Patience); ; {
		if err := os.RemoveAll(parent); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
		err := os.WriteFile(parent, nil, 0o600)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if said := becomes(t, health, http.StatusServiceUnavailable); !strings.Contains(said, "the store is broken: ") || !strings.Contains(said, "not a directory") {
		t.Errorf("/healthz says %s", said)
	}
	if err := os.Remove(parent); err != nil {
		t.Fatal(err)
	}
	becomes(t, health, http.StatusOK)
}
