package sluicehttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
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
		x.Bodies, x.Base = &Bodies{Max: 1 << 20}, memory{func() int { return http.StatusOK }}
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

// With little room left a body is freed once it is sent, and so is not sent again.
func TestNoBodyIsKeptForRetriesWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, held := range []int64{0, 600 << 10} {
			sends := 0
			x := newRig(t)
			x.Bodies, x.Base = &Bodies{Max: 1 << 20}, memory{func() int { sends++; return http.StatusServiceUnavailable }}
			x.Bodies.take(held)
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
