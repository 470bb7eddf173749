package mock

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
)

// maxRequest bounds the size of a request, as real providers do.
const maxRequest = 32 << 20

// exchange is one request and its response.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	fault fault

	ask      ask
	model    string
	accepted bool
	ended    bool
	gone     bool // the client is gone
}

// read returns the body of a request. If that fails, it sends an error response and returns false.
func (x *exchange) read() ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, maxRequest))
	if err == nil {
		return body, true
	}
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		x.fail(http.StatusRequestEntityTooLarge, "Request exceeds the maximum allowed number of bytes.")
	} else {
		x.fail(http.StatusBadRequest, "The body could not be read.")
	}
	return nil, false
}

// admit decides whether the request is accepted. If it returns false, it has sent the response: a refusal, or the
// status that X-Mock asks for.
func (x *exchange) admit(a ask, model string, u Usage) bool {
	a.key = x.s.keys.of(x.r.Header)
	a.takes = append(a.takes, amount{places, 1})
	x.ask, x.model = a, model
	if x.fault.status != 0 {
		x.force()
		return false
	}
	if !x.admitPlan() {
		return false
	}
	d := x.s.book.arrive(&x.ask)
	x.s.speaks.headers(x.w.Header(), d.at, d.states)
	if x.fault.garbage {
		garble(x.w.Header())
	}
	if !d.accepted {
		x.s.tally.change(func(s *Stats) { s.Arrived++; s.Throttled++ })
		x.s.journal.add(x, d.at, throttled)
		status, body := x.s.speaks.refuse(x.w.Header(), &d)
		x.reply(status, body)
		return false
	}
	u.Requests = 1
	x.accepted = true
	x.usePlan(u)
	x.s.tally.accept(x.r.Header.Get("X-Agent-Id"), model, u)
	x.s.journal.add(x, d.at, accepted)
	return !x.fault.hang || x.hang()
}

// force sends the status that X-Mock asks for. The request takes nothing from the limits.
func (x *exchange) force() {
	outcome := failed
	x.s.tally.change(func(s *Stats) {
		s.Arrived++
		if x.fault.status == http.StatusTooManyRequests {
			outcome = throttled
			s.Throttled++
		} else {
			s.Failed++
		}
	})
	x.s.journal.add(x, x.s.now(), outcome)
	if x.fault.retryAfter != "" {
		x.w.Header().Set("Retry-After", x.fault.retryAfter)
	}
	x.fail(x.fault.status, fmt.Sprintf("X-Mock asked for status %d.", x.fault.status))
}

// hang waits until the client disconnects or the server stops.
func (x *exchange) hang() bool {
	select {
	case <-x.r.Context().Done():
		x.gone = true
		return false
	case <-x.s.stopping.Done():
		panic(http.ErrAbortHandler) // cuts the connection
	}
}

// begin waits until the first byte is due. It returns false if the client disconnects first.
func (x *exchange) begin() bool { return x.sleep(x.s.latency()) }

// free counts a request that no limit applies to.
func (x *exchange) free() {
	x.s.tally.change(func(s *Stats) { s.Free++ })
}

// end gives back the slots of the request, once. It runs before the last bytes of a response, so a client that has read
// them all finds its slot free.
func (x *exchange) end() {
	if !x.accepted || x.ended {
		return
	}
	x.ended = true
	x.gone = x.gone || x.r.Context().Err() != nil
	x.s.book.done(&x.ask)
	x.s.tally.change(func(s *Stats) {
		s.InFlight--
		if x.gone {
			s.Aborted++
		}
	})
}

// produce counts output tokens.
func (x *exchange) produce(n int64) {
	if n == 0 {
		return
	}
	x.s.book.produce(&x.ask, n)
	x.usePlan(Usage{OutputTokens: n})
	x.s.tally.change(func(s *Stats) { s.enter(x.model, Usage{OutputTokens: n}) })
}

// pause waits between two pieces of a stream. It returns false if the client disconnects.
func (x *exchange) pause() bool {
	d := x.s.opts.Pace
	if x.fault.slow >= 0 {
		d = x.fault.slow
	}
	return x.sleep(d)
}

func (x *exchange) sleep(d time.Duration) bool {
	x.gone = !sleep.For(x.r.Context(), d)
	return !x.gone
}

// fail sends an error response in the provider's format.
func (x *exchange) fail(status int, message string) {
	x.reply(status, x.s.speaks.problem(x.w.Header(), status, message))
}

// missing sends the error for an unknown path.
func (x *exchange) missing() { x.fail(http.StatusNotFound, "Not found: "+x.r.Method+" "+x.r.URL.Path) }

// allow reports whether the request has one of these methods. If not, it sends an error response.
func (x *exchange) allow(methods ...string) bool {
	if slices.Contains(methods, x.r.Method) {
		return true
	}
	x.w.Header()["Allow"] = methods
	x.fail(http.StatusMethodNotAllowed, "Method Not Allowed")
	return false
}

// garble replaces the rate-limit headers with garbage.
func garble(h http.Header) {
	rubbish := []string{"banana", "-1", "99999999999999999999999", "", "NaN", "2026-13-45T99:99:99Z", "0x7f", "1e999", "💧"}
	i := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name != "Content-Type" {
			h[name] = []string{rubbish[i%len(rubbish)]}
			i++
		}
	}
	h["Retry-After"] = []string{"soon"}
	h["X-Ratelimit-Limit"] = []string{"many", "few", strconv.Itoa(-1 << 62)}
	h["Ratelimit"] = []string{`"x";r=;t=, ;;;=,"`}
}
