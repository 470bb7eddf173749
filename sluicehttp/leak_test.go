package sluicehttp

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A thousand clients are cancelled at any moment: while they wait, connect, send, or read. Nothing of them remains: the
// leak check at the end of all tests looks for goroutines.
func TestKilledClientsLeaveNothing(t *testing.T) {
	limits := wideLimits()
	limits[0].Size = 8 // most have to wait
	x := newRig(t, limits...)
	x.Abort = true
	stop := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasSuffix(r.URL.Path, "/refused"):
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case strings.HasSuffix(r.URL.Path, "/stream"):
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for range 20 {
			event(w, `{"text":"some words"}`)
			select {
			case <-time.After(200 * time.Microsecond):
			case <-r.Context().Done():
				return
			case <-stop:
				return
			}
		}
		event(w, `{"usage":{"in":5,"out":20}}`)
	})
	t.Cleanup(func() { close(stop) })
	x.Retry.Attempts = 1
	paths := []string{"/stream", "/stream", "/plain"}
	var wg sync.WaitGroup
	turn := make(chan struct{}, 50) // at once
	for i := range 1000 {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			random := rand.New(rand.NewPCG(7, uint64(i)))
			life := time.Duration(random.Int64N(int64(30 * time.Millisecond)))
			if i%20 == 0 {
				life = time.Hour
			}
			ctx, cancel := context.WithTimeout(t.Context(), life)
			defer cancel()
			r := post(t, url+paths[i%len(paths)], `{"model":"m","stream":true}`).WithContext(ctx)
			if i%4 == 0 {
				r.Header.Set("Accept-Encoding", "gzip")
			}
			resp, err := x.RoundTrip(r)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			switch random.IntN(3) {
			case 0: // reads as long as it lives
				_, _ = io.Copy(io.Discard, resp.Body)
			case 1: // somebody else closes while it reads
				read := make(chan struct{})
				go func() {
					defer close(read)
					_, _ = io.Copy(io.Discard, resp.Body)
				}()
				time.Sleep(time.Duration(random.IntN(500)) * time.Microsecond) // any moment will do
				resp.Body.Close()
				<-read
			default: // reads a little
				_, _ = resp.Body.Read(make([]byte, 1+random.IntN(500)))
			}
		})
	}
	wg.Wait()
	x.wantQuiet(t)
	x.told.mu.Lock()
	defer x.told.mu.Unlock()
	counts := map[string]int{}
	for _, e := range x.told.list {
		switch {
		case e.Ticket == "":
			counts["waiting"]++
		case e.Status == 0:
			counts["sending"]++
		case e.Aborted:
			counts["reading"]++
		default:
			counts["complete"]++
		}
	}
	if len(x.told.list) != 1000 || counts["waiting"] == 0 || counts["reading"] == 0 || counts["complete"] == 0 {
		t.Errorf("%d were told of: %v", len(x.told.list), counts)
	}
	if held := len(x.lingering.list); held != 0 {
		t.Errorf("%d are kept", held)
	}
}

// If the provider may still be working, the concurrency is free after its usual time.
func TestLingeringPlacesComeBack(t *testing.T) {
	x := newRig(t, sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: 50})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"text":"some words"}`)
		<-r.Context().Done()
	})
	for range 50 {
		resp, err := x.RoundTrip(get(t, url))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	x.wantCharged(t, map[string]int64{"places": 50})
	x.Settle()
	x.wantQuiet(t)
	if n := len(x.lingering.list); n != 0 {
		t.Errorf("%d are kept", n)
	}
}

// A misbehaving upstream: the client gets its response or an error, memory stays bounded, and nothing leaks.
func TestBadUpstreams(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"garbage headers": func(w http.ResponseWriter, r *http.Request) {
			for i := range 200 {
				w.Header().Set(fmt.Sprintf("X-RateLimit-Remaining-%d", i), strings.Repeat("9", 500)+"\x7f,;=\"")
			}
			w.Header().Set("X-RateLimit-Limit", "-1e999")
			w.Header().Set("Retry-After", "NaN")
			w.Header().Set("Date", "yesterday")
			w.Header().Set("Content-Type", "\x01;;;")
			fmt.Fprint(w, "x")
		},
		"closes early": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "only this")
		},
		"closes a stream early": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, `{"usage":{"in":5,"out":1}}`)
			panic(http.ErrAbortHandler)
		},
		"raw nonsense": func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				fmt.Fprint(c, "this is not HTTP\r\n\r\n")
				c.Close()
			}
		},
		"too large a header": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Large", strings.Repeat("x", 2<<20))
		},
		"error of endless length": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.CopyN(w, endless{}, 5<<20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newRig(t)
			url := serve(t, h)
			resp, err := x.RoundTrip(post(t, url, `{"model":"m","stream":true}`))
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			x.wantQuiet(t)
			x.told.one(t)
			x.wantCharged(t, map[string]int64{sluice.Requests: 1})
			if x.Estimates().Overall().Calls != 0 {
				t.Error("something was learned")
			}
		})
	}
}
