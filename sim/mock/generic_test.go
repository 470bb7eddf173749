package mock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

func TestGenericEcho(t *testing.T) {
	s := server(t, mock.Options{Provider: "generic"})
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "REPORT"} {
		w := send(s, method, "/a/b?c=d", "12345")
		if want := `{"method":"` + method + `","path":"/a/b","size":5}`; w.Code != 200 || w.Body.String() != want {
			t.Errorf("%d %s, want %s", w.Code, w.Body, want)
		}
	}
	if w := send(s, "HEAD", "/x", ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Ratelimit") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestGenericLimits(t *testing.T) {
	c := newClock()
	s := server(t, mock.Options{Provider: "generic", Requests: sim.Rate{N: 2, Window: 30 * time.Second}, Concurrency: 5, Now: c.Now})
	send(s, "GET", "/", "")
	c.advance(5500 * time.Millisecond)
	w := send(s, "GET", "/", "")
	if got, want := w.Header().Get("Ratelimit-Policy"), `"requests";q=2;w=30, "concurrency";q=5;qu="concurrent-requests"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := w.Header().Get("Ratelimit"), `"requests";r=0;t=30, "concurrency";r=4`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w = send(s, "GET", "/", "")
	if w.Code != 429 || w.Header().Get("Retry-After") != "25" || w.Header().Get("Content-Type") != "application/problem+json" ||
		!strings.Contains(w.Body.String(), `"violated-policies":["requests"]`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	s = server(t, mock.Options{Provider: "generic", Requests: sim.Rate{N: 2, Window: 1500 * time.Millisecond}, Now: c.Now})
	if got, want := send(s, "GET", "/", "").Header().Get("Ratelimit-Policy"), `"requests";q=2`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
