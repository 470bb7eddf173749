package sluicehttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
)

// memory is a base transport that reads the body and answers.
type memory struct{ status func() int }

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{StatusCode: m.status(), Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// Waiting requests held any number of bytes: 200 bodies of 4 MiB took 800 MB.
func TestBodiesOfWaitingRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Bodies, x.Base, x.Caller.Class = &Bodies{Max: 1 << 20}, memory{func() int { return http.StatusOK }}, "p0"
		if err := x.Gate.Pause(t.Context(), "api", time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		sent, full := 0, 0
		for i, size := range []int{400 << 10, 400 << 10, 400 << 10, 100, smallBody} {
			for _, known := range []bool{true, false} {
				wg.Go(func() {
					r := post(t, "http://provider/v1", strings.Repeat("x", size))
					if !known {
						r.ContentLength, r.GetBody = -1, nil
					}
					resp, err := x.RoundTrip(r)
					mu.Lock()
					defer mu.Unlock()
					var e *sluice.Error
					switch {
					case err == nil:
						sent++
						_ = resp.Body.Close()
					case errors.As(err, &e) && errors.Is(err, sluice.ErrFull) && !e.RetryAt.IsZero() && size > smallBody:
						full++
					default:
						t.Errorf("%d: %v", i, err)
					}
				})
			}
			synctest.Wait()
		}
		mu.Lock()
		if sent != 0 || full == 0 || full > 4 {
			t.Errorf("%d were sent in the pause, %d found no room", sent, full)
		}
		mu.Unlock()
		if held := x.Bodies.used.Load(); held > x.Bodies.Max || held < x.Bodies.Max/2 {
			t.Errorf("%d bytes are held", held)
		}
		wg.Wait()
		if held := x.Bodies.used.Load(); held != 0 || sent+full != 10 {
			t.Errorf("%d bytes are still held; %d were sent, %d found no room", held, sent, full)
		}
	})
}

// Waiting requests of lower classes took all the room, and requests of the highest class got 429.
func TestTheHighestClassFindsRoomForItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Bodies, x.Base = &Bodies{Max: 1 << 20}, memory{func() int { return http.StatusOK }}
		if err := x.Gate.Pause(t.Context(), "api", time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		send := func(class string) (err error) {
			done := make(chan error, 1)
			wg.Go(func() {
				r := post(t, "http://provider/v1", strings.Repeat("x", 200<<10))
				resp, err := x.RoundTrip(r.WithContext(WithCaller(r.Context(), Caller{Agent: "a", Class: class})))
				if err == nil {
					_ = resp.Body.Close()
				}
				done <- err
			})
			synctest.Wait()
			select {
			case err = <-done:
			default: // it waits
			}
			return err
		}
		for i, want := range []error{nil, nil, nil, sluice.ErrFull} {
			if err := send("p2"); !errors.Is(err, want) {
				t.Errorf("%d of the lowest class: %v", i, err)
			}
		}
		for i, want := range []error{nil, nil, sluice.ErrFull} {
			if err := send("p0"); !errors.Is(err, want) {
				t.Errorf("%d of the highest class: %v", i, err)
			}
		}
		wg.Wait()
	})
}

// With little room left a body is freed once it is sent, and so is not sent again.
func TestNoBodyIsKeptForRetriesWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, held := range []int64{0, 600 << 10} {
			sends := 0
			x := newRig(t)
			x.Bodies, x.Base = &Bodies{Max: 1 << 20}, memory{func() int { sends++; return http.StatusServiceUnavailable }}
			x.Bodies.take(held, true)
			r := post(t, "http://provider/v1", strings.Repeat("x", 100<<10))
			r.GetBody = nil
			r.Header.Set("Idempotency-Key", "1")
			resp, err := x.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if once := held > 0; (sends == 1) != once {
				t.Errorf("with %d bytes held it was sent %d times", held, sends)
			}
			if left := x.Bodies.used.Load() - held; left != 0 {
				t.Errorf("%d bytes are still held", left)
			}
		}
	})
}

// A compressed body that the gate had to change was counted with its compressed size.
func TestUncompressedBodiesAreBounded(t *testing.T) {
	for _, max := range []int64{1 << 20, 64 << 10} {
		x := newRig(t)
		x.Bodies, x.Base = &Bodies{Max: max}, memory{func() int { return http.StatusOK }}
		x.Route = func(context.Context, Caller, *provider.ParsedRequest) (string, error) { return "other", nil }
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, `{"model":"auto","x":"`+strings.Repeat("x", 500<<10)+`"}`)
		_ = z.Close()
		q := post(t, "http://provider/v1", packed.String())
		q.Header.Set("Content-Encoding", "gzip")
		resp, err := x.RoundTrip(q)
		if fits := max > 500<<10; fits != (err == nil) || !fits && !errors.Is(err, sluice.ErrFull) {
			t.Errorf("%d bytes of room: %v", max, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		x.Settle()
		if held := x.Bodies.used.Load(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	}
}

// With little room left, a body was not kept for the dead letter of its request.
func TestADeadLetterKeepsItsBodyWithoutRoom(t *testing.T) {
	list, err := deadletter.Open(filepath.Join(t.TempDir(), "letters"))
	if err != nil {
		t.Fatal(err)
	}
	x := newRig(t)
	x.Retry, x.Letters = retry.Policy{Attempts: 1}, &Letters{Keeper: deadletter.NewKeeper(list, nil), MaxBody: 200 << 10}
	x.Bodies, x.Base, x.Caller.Class = &Bodies{Max: 1 << 20}, memory{func() int { return http.StatusInternalServerError }}, "p0"
	x.Bodies.take(600<<10, true)
	for _, size := range []int{100 << 10, 300 << 10} {
		resp, err := x.RoundTrip(post(t, "http://provider/v1", strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	x.Letters.Keeper.Flush()
	entries, err := list.Entries()
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d letters: %v", len(entries), err)
	}
	for _, e := range entries {
		if n, lost := len(e.Request.Body), e.Request.Lost != ""; n != 100<<10 && !lost || n > 0 && lost {
			t.Errorf("%d bytes are kept: %s", n, e.Request.Lost)
		}
	}
	if a, b := len(entries[0].Request.Body), len(entries[1].Request.Body); a+b != 100<<10 {
		t.Errorf("%d and %d bytes are kept", a, b)
	}
}
