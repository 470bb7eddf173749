package alert_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/alert"
	"github.com/sluicehq/sluice/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// hook is a webhook with scripted responses.
type hook struct {
	mu       sync.Mutex
	statuses []int // of the first answers; then 204
	got      []map[string]any
	tries    []time.Time
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var message map[string]any
	if err != nil || json.Unmarshal(text, &message) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries = append(h.tries, time.Now())
	if len(h.statuses) > 0 {
		w.WriteHeader(h.statuses[0])
		h.statuses = h.statuses[1:]
		return
	}
	h.got = append(h.got, message)
	w.WriteHeader(http.StatusNoContent)
}

// serve runs the webhook. Its address holds a secret.
func (h *hook) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // until it is closed
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return "http://" + l.Addr().String() + "/services/s3cr3t?token=s3cr3t"
}

// reports collects errors.
type reports struct {
	mu   sync.Mutex
	list []string
}

func (r *reports) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, err.Error())
}

func post(t *testing.T, h *hook, messages ...any) (*alert.Poster, *reports) {
	t.Helper()
	var r reports
	p, err := alert.New(h.serve(t), r.add)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		p.Post(m)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		t.Error(err)
	}
	return p, &r
}

func TestDelivers(t *testing.T) {
	t.Parallel()
	h := &hook{statuses: []int{503}}
	p, r := post(t, h, map[string]any{"n": 1}, map[string]any{"n": 2})
	if len(h.got) != 2 || h.got[0]["n"] != 1.0 || h.got[1]["n"] != 2.0 || len(h.tries) != 3 || p.Dropped() != 0 || len(r.list) != 0 {
		t.Errorf("got %v in %d tries, %d dropped, %q", h.got, len(h.tries), p.Dropped(), r.list)
	}
	p.Post("too late")
	if p.Dropped() != 1 {
		t.Error("after its end it took one more")
	}
}

// Permanent failures are not retried, and errors hold no secret.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 404, 302} {
		h := &hook{statuses: []int{status}}
		p, r := post(t, h, map[string]any{"n": 1})
		if len(h.tries) != 1 || p.Dropped() != 1 || len(r.list) != 1 || !strings.Contains(r.list[0], "answered") || strings.Contains(r.list[0], "s3cr3t") {
			t.Errorf("%d: %d tries, %d dropped, %q", status, len(h.tries), p.Dropped(), r.list)
		}
	}
	p, r := post(t, &hook{}, func() {}, strings.Repeat("x", alert.MaxMessage))
	if p.Dropped() != 2 || len(r.list) != 2 || !strings.Contains(r.list[0], "func()") || !strings.Contains(r.list[1], "longer than 65536") ||
		strings.Contains(r.list[0]+r.list[1], "s3cr3t") {
		t.Errorf("%d dropped, %q", p.Dropped(), r.list)
	}
}

// An unreachable webhook delays neither Post nor Close.
func TestNobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		p, err := alert.New("http://127.0.0.1:1/s3cr3t", r.add)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for i := range 3 * alert.MaxQueued {
			p.Post(i)
		}
		if time.Since(begun) != 0 {
			t.Error("posting took time")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); err == nil {
			t.Error("all of it was delivered")
		}
		if p.Dropped() != 3*alert.MaxQueued {
			t.Errorf("%d dropped", p.Dropped())
		}
		for _, text := range r.list {
			if strings.Contains(text, "s3cr3t") || !strings.Contains(text, "127.0.0.1:1") {
				t.Error(text)
			}
		}
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "s3cr3t", "ftp://host/s3cr3t", "https:///s3cr3t", "http://%zz/s3cr3t", "unix:/s3cr3t"} {
		if _, err := alert.New(address, nil); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
