// Package envoy implements Envoy's rate limit service, version 3: Envoy asks whether a request may go, and the gate
// answers at once. It also implements Envoy's external processing: there the gate holds a request until its turn, and reads the response.
//
// The domain of a question names the resource. All descriptors of a question describe one request, so they are charged
// together: the request takes from all limits of the resource or from none. docs/envoy.md describes the entries.
package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/envoy/extproc"
	"github.com/sluicehq/sluice/envoy/ratelimit"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/grpcserve"
)

// Options configures a server.
type Options struct {
	Gate *sluice.Gate
	// Log records questions that cannot be answered, once for each kind of mistake. Nil means no log.
	Log *slog.Logger
	// Model returns the class of models that a model of a resource counts under, such as opus-4 for claude-opus-4-5. Nil
	// means that models count under their own names.
	Model func(resource, model string) string
	// Sends gates requests for external processing. Nil means that only the rate limit service is served.
	Sends Sends
	// Now is the clock for resets. Nil means time.Now.
	Now func() time.Time
}

// Server implements the service. All methods are safe for concurrent use.
type Server struct {
	ratelimit.UnimplementedRateLimitServiceServer

	gate  atomic.Pointer[sluice.Gate]
	model func(resource, model string) string
	sends Sends
	log   *slog.Logger
	now   func() time.Time

	mu   sync.Mutex
	told map[string]bool // mistakes already logged
}

// maxTold bounds how many different mistakes are logged.
const maxTold = 100

// New returns a server.
func New(o Options) *Server {
	s := &Server{model: o.Model, sends: o.Sends, log: o.Log, now: o.Now, told: map[string]bool{}}
	s.gate.Store(o.Gate)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s
}

// Follow makes the server use another gate from now on, such as one with a new configuration.
func (s *Server) Follow(gate *sluice.Gate) { s.gate.Store(gate) }

// Register adds the services to a gRPC server that the caller runs and stops.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	ratelimit.RegisterRateLimitServiceServer(r, s)
	if s.sends != nil {
		extproc.RegisterExternalProcessorServer(r, &processor{server: s})
	}
}

// Serve serves a listener until ctx ends, and then returns nil. With a nil config it speaks plain text.
func (s *Server) Serve(ctx context.Context, l net.Listener, config *tls.Config) error {
	return grpcserve.Serve(ctx, l, config, s.Register)
}

// ShouldRateLimit decides about one request. An error means that there is no decision; Envoy then follows its setting
// failure_mode_deny.
func (s *Server) ShouldRateLimit(ctx context.Context, q *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	gate := s.gate.Load()
	a, err := s.decide(ctx, gate, q)
	if errors.Is(err, sluice.ErrClosed) && s.gate.Load() != gate { // a reload replaced the gate in the meantime
		a, err = s.decide(ctx, s.gate.Load(), q)
	}
	if err != nil {
		return nil, s.failed(ctx, q.GetDomain(), err)
	}
	return a, nil
}

func (s *Server) decide(ctx context.Context, gate *sluice.Gate, q *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	parts, req, err := parse(q)
	if err != nil {
		return nil, err
	}
	if s.model != nil && req.Model != "" {
		req.Model = s.model(req.Resource, req.Model)
	}
	if req.Key, err = label(ctx, gate, &req); err != nil {
		return nil, err
	}
	var refused *sluice.Error
	if _, err := gate.Try(ctx, req); err != nil && (!errors.As(err, &refused) || !isRefusal(err)) {
		return nil, err
	}
	out := &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}
	if refused != nil {
		out.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
		out.RawBody = []byte(refused.Error() + "\n")
	}
	limits := s.limits(ctx, gate, req.Resource)
	var tightest *inspect.LimitStatus
	for _, p := range parts {
		l := choose(limits, &req, p.unit, refused)
		out.Statuses = append(out.Statuses, s.describe(l, refused))
		if l != nil && (tightest == nil || left(l) < left(tightest)) {
			tightest = l
		}
	}
	out.ResponseHeadersToAdd = s.headers(tightest, refused)
	return out, nil
}

// isRefusal reports whether an error is a decision of the gate. Any other error means that the gate could not decide.
func isRefusal(err error) bool {
	for _, of := range []error{
		sluice.ErrNotNow, sluice.ErrCapacity, sluice.ErrFull, sluice.ErrBilling, sluice.ErrBudget, sluice.ErrSlots, sluice.ErrDeadline,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// limits returns the levels of a resource's limits, or none if they cannot be read: the decision stands all the same.
func (s *Server) limits(ctx context.Context, gate *sluice.Gate, resource string) []inspect.LimitStatus {
	r, err := gate.Resource(ctx, resource)
	if err != nil {
		return nil
	}
	return r.Limits
}

// choose returns the limit to report: the one that refused the request, or else the fullest one that counts it in unit.
func choose(limits []inspect.LimitStatus, req *sluice.Request, unit string, refused *sluice.Error) (found *inspect.LimitStatus) {
	for i := range limits {
		l := &limits[i]
		if l.Limit <= 0 || !req.In(l.Scope) {
			continue
		}
		if refused != nil && refused.Limit != "" {
			if l.Name == refused.Limit && (found == nil || left(l) < left(found)) {
				found = l
			}
			continue
		}
		if l.Unit == unit && (found == nil || left(l) < left(found)) {
			found = l
		}
	}
	return found
}

// left returns the fraction of a limit that is left.
func left(l *inspect.LimitStatus) float64 { return float64(max(l.Remaining, 0)) / float64(l.Limit) }

// describe returns the status of a descriptor. l is nil if no limit of known size counts the request.
func (s *Server) describe(l *inspect.LimitStatus, refused *sluice.Error) *ratelimit.RateLimitResponse_DescriptorStatus {
	d := &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
	if refused != nil {
		d.Code = ratelimit.RateLimitResponse_OVER_LIMIT
	}
	if reset, ok := s.reset(l, refused); ok {
		d.DurationUntilReset = durationpb.New(reset)
	}
	if l == nil {
		return d
	}
	d.CurrentLimit = &ratelimit.RateLimitResponse_RateLimit{Name: l.Name, RequestsPerUnit: clamp(l.Rate)}
	d.LimitRemaining = clamp(l.Remaining)
	if unit, n := unitOf(time.Duration(l.WindowMS) * time.Millisecond); n > 0 {
		d.CurrentLimit.Unit = unit
		if n > 1 {
			d.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(n)
		}
	}
	return d
}

// reset returns how long it takes until the limit has room again or resets.
func (s *Server) reset(l *inspect.LimitStatus, refused *sluice.Error) (time.Duration, bool) {
	switch {
	case refused != nil && !refused.RetryAt.IsZero():
		return max(refused.RetryAt.Sub(s.now()), 0), true
	case l != nil && l.ResetAt != nil:
		return max(l.ResetAt.Sub(s.now()), 0), true
	}
	return 0, false
}

// headers returns the headers for Envoy's client. The names follow the IETF draft; Envoy itself can add x-ratelimit-*.
func (s *Server) headers(l *inspect.LimitStatus, refused *sluice.Error) (list []*ratelimit.HeaderValue) {
	add := func(name, value string) { list = append(list, &ratelimit.HeaderValue{Key: name, Value: value}) }
	reset, known := s.reset(l, refused)
	seconds := strconv.FormatInt(int64(math.Ceil(reset.Seconds())), 10)
	if l != nil {
		add("ratelimit-limit", strconv.FormatInt(l.Limit, 10))
		add("ratelimit-remaining", strconv.FormatInt(max(l.Remaining, 0), 10))
		if known {
			add("ratelimit-reset", seconds)
		}
	}
	if refused != nil {
		if known {
			add("retry-after", seconds)
		}
		if refused.Reason != "" {
			add("x-sluice-reason", refused.Reason)
		}
	}
	return list
}

// unitOf expresses a window as a number of the largest unit that fits; 0 if none does.
func unitOf(window time.Duration) (ratelimit.RateLimitResponse_RateLimit_Unit, uint32) {
	const day = 24 * time.Hour
	for _, u := range []struct {
		unit ratelimit.RateLimitResponse_RateLimit_Unit
		is   time.Duration
	}{
		{ratelimit.RateLimitResponse_RateLimit_WEEK, 7 * day}, {ratelimit.RateLimitResponse_RateLimit_DAY, day}, {ratelimit.RateLimitResponse_RateLimit_HOUR, time.Hour},
		{ratelimit.RateLimitResponse_RateLimit_MINUTE, time.Minute}, {ratelimit.RateLimitResponse_RateLimit_SECOND, time.Second},
	} {
		if window > 0 && window%u.is == 0 {
			return u.unit, clamp(int64(window / u.is))
		}
	}
	return ratelimit.RateLimitResponse_RateLimit_UNKNOWN, 0
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// failed returns the error for a question without a decision, and logs it: by default Envoy then lets the request go.
func (s *Server) failed(ctx context.Context, domain string, err error) error {
	code := codes.Unavailable
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, sluice.ErrUnknownResource):
		code = codes.NotFound
		err = fmt.Errorf("domain: there is no resource %.80q", domain)
	case errors.Is(err, sluice.ErrInvalid), errors.Is(err, errQuestion), errors.Is(err, sluice.ErrClass):
		code = codes.InvalidArgument
	}
	s.tell(err.Error())
	return status.Error(code, err.Error())
}

func (s *Server) tell(what string) {
	s.mu.Lock()
	first := !s.told[what] && len(s.told) < maxTold
	if first {
		s.told[what] = true
	}
	s.mu.Unlock()
	if first {
		s.log.Warn("envoy: a request was not decided about: " + what)
	}
}
