package envoy_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/envoy"
	"github.com/sluicehq/sluice/envoy/ratelimit"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func openGate(tb testing.TB, limits ...sluice.Limit) *sluice.Gate {
	tb.Helper()
	gate, err := sluice.Open(tb.Context(), sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: limits}}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = gate.Close() })
	return gate
}

// entries makes a descriptor of keys and values.
func entries(list ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for i := 0; i < len(list); i += 2 {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: list[i], Value: list[i+1]})
	}
	return d
}

func hits(d *ratelimit.RateLimitDescriptor, n uint64) *ratelimit.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func question(descriptors ...*ratelimit.RateLimitDescriptor) *ratelimit.RateLimitRequest {
	return &ratelimit.RateLimitRequest{Domain: "api", Descriptors: descriptors}
}

func ask(tb testing.TB, s *envoy.Server, q *ratelimit.RateLimitRequest) *ratelimit.RateLimitResponse {
	tb.Helper()
	a, err := s.ShouldRateLimit(tb.Context(), q)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func header(a *ratelimit.RateLimitResponse, name string) string {
	for _, h := range a.GetResponseHeadersToAdd() {
		if h.GetKey() == name {
			return h.GetValue()
		}
	}
	return ""
}

func TestRequestsAreLimited(t *testing.T) {
	t.Parallel()
	s := envoy.New(envoy.Options{Gate: openGate(t, sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 3, Window: time.Minute})})
	for i := range 3 {
		a := ask(t, s, question(entries("agent", "web")))
		if a.GetOverallCode() != ratelimit.RateLimitResponse_OK || len(a.GetStatuses()) != 1 {
			t.Fatalf("request %d: %v", i, a)
		}
		d := a.GetStatuses()[0]
		if l := d.GetCurrentLimit(); l.GetName() != "minute" || l.GetRequestsPerUnit() != 3 || l.GetUnit() != ratelimit.RateLimitResponse_RateLimit_MINUTE || l.GetUnitMultiplier() != nil {
			t.Errorf("the limit is %v", l)
		}
		if want := uint32(2 - i); d.GetLimitRemaining() != want {
			t.Errorf("%d remain, want %d", d.GetLimitRemaining(), want)
		}
		if got := header(a, "ratelimit-limit"); got != "3" {
			t.Errorf("ratelimit-limit is %q", got)
		}
	}
	a := ask(t, s, question(entries("agent", "web"), entries("model", "m")))
	if a.GetOverallCode() != ratelimit.RateLimitResponse_OVER_LIMIT || len(a.GetStatuses()) != 2 {
		t.Fatalf("the fourth: %v", a)
	}
	for _, d := range a.GetStatuses() {
		if d.GetCode() != ratelimit.RateLimitResponse_OVER_LIMIT || d.GetCurrentLimit().GetName() != "minute" || d.GetLimitRemaining() != 0 {
			t.Errorf("the status is %v", d)
		}
		if reset := d.GetDurationUntilReset().AsDuration(); reset <= 0 || reset > 2*time.Minute {
			t.Errorf("it is over in %v", reset)
		}
	}
	if header(a, "retry-after") == "" || header(a, "x-sluice-reason") != "limit" || len(a.GetRawBody()) == 0 {
		t.Errorf("the headers are %v, the body is %q", a.GetResponseHeadersToAdd(), a.GetRawBody())
	}
}

// All descriptors of a question describe one request: it takes from all limits or from none.
func TestDescriptorsAreOneRequest(t *testing.T) {
	t.Parallel()
	gate := openGate(
		t,
		sluice.Limit{Name: "requests", Kind: sluice.Fixed, Size: 10, Window: 10 * time.Minute},
		sluice.Limit{Name: "tokens", Kind: sluice.Fixed, Size: 1000, Window: time.Hour, Unit: "tokens"},
		sluice.Limit{Name: "own", Kind: sluice.Fixed, Size: 4, Window: time.Hour, Per: []sluice.Scope{sluice.PerAgent}},
	)
	s := envoy.New(envoy.Options{Gate: gate})
	used := func(name, scope string) int64 {
		t.Helper()
		r, err := gate.Resource(t.Context(), "api")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range r.Limits {
			if l.Name == name && l.Scope == scope {
				return l.Used
			}
		}
		return 0
	}
	a := ask(t, s, question(entries("agent", "a", "class", "p1"), hits(entries("unit", "tokens"), 400), entries("model", "m")))
	if a.GetOverallCode() != ratelimit.RateLimitResponse_OK {
		t.Fatal(a)
	}
	if r, k, own := used("requests", ""), used("tokens", ""), used("own", "agent=a"); r != 1 || k != 400 || own != 1 {
		t.Errorf("one request has used %d requests, %d tokens, %d of its own", r, k, own)
	}
	if l := a.GetStatuses()[1].GetCurrentLimit(); l.GetName() != "tokens" || l.GetUnit() != ratelimit.RateLimitResponse_RateLimit_HOUR || a.GetStatuses()[1].GetLimitRemaining() != 600 {
		t.Errorf("of tokens it says %v", a.GetStatuses()[1])
	}
	if l := a.GetStatuses()[0].GetCurrentLimit(); l.GetName() != "own" {
		t.Errorf("the fullest limit is %v", l)
	}
	if a := ask(t, s, question(entries("agent", "a", "tokens", "700"))); a.GetOverallCode() != ratelimit.RateLimitResponse_OVER_LIMIT || a.GetStatuses()[0].GetCurrentLimit().GetName() != "tokens" {
		t.Errorf("too many tokens: %v", a)
	}
	if r, k := used("requests", ""), used("tokens", ""); r != 1 || k != 400 {
		t.Errorf("the refused one has used %d requests, %d tokens", r-1, k-400)
	}
	q := question(entries("agent", "b"))
	q.HitsAddend = 5
	if a := ask(t, s, q); a.GetOverallCode() != ratelimit.RateLimitResponse_OVER_LIMIT {
		t.Errorf("five at once: %v", a)
	}
	q.HitsAddend = 3
	if a := ask(t, s, q); a.GetOverallCode() != ratelimit.RateLimitResponse_OK || used("own", "agent=b") != 3 {
		t.Errorf("three at once: %v, %d are used", a, used("own", "agent=b"))
	}
	if l := ask(t, s, question(hits(entries("agent", "c"), 0))).GetStatuses()[0].GetCurrentLimit(); l.GetUnitMultiplier().GetValue() > 10 {
		t.Errorf("the limit is %v", l)
	}
	if n := used("own", "agent=c"); n != 0 {
		t.Errorf("a look has used %d", n)
	}
}

func TestWindowsAreWrittenInUnits(t *testing.T) {
	t.Parallel()
	s := envoy.New(envoy.Options{Gate: openGate(t, sluice.Limit{Name: "ten", Kind: sluice.Rolling, Size: 5, Window: 10 * time.Second})})
	if l := ask(t, s, question(entries())).GetStatuses()[0].GetCurrentLimit(); l.GetUnit() != ratelimit.RateLimitResponse_RateLimit_SECOND || l.GetUnitMultiplier().GetValue() != 10 {
		t.Errorf("5 in 10 s is %v", l)
	}
}

// A bucket of 5/s with a burst of 10 is 5 requests per second, not 10.
func TestTheRateOfABucketIsNotItsBurst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit     sluice.Limit
		rate      uint32
		unit      ratelimit.RateLimitResponse_RateLimit_Unit
		remaining uint32
	}{
		{sluice.Limit{Name: "l", Kind: sluice.Bucket, Size: 5, Window: time.Second, Burst: 10}, 5, ratelimit.RateLimitResponse_RateLimit_SECOND, 9},
		{sluice.Limit{Name: "l", Kind: sluice.Bucket, Size: 600, Window: time.Minute, Burst: 3}, 600, ratelimit.RateLimitResponse_RateLimit_MINUTE, 2},
		{sluice.Limit{Name: "l", Kind: sluice.Bucket, Size: 999_999_999_999, Window: 100 * 24 * time.Hour, Burst: 7}, math.MaxUint32, ratelimit.RateLimitResponse_RateLimit_DAY, 6},
		{sluice.Limit{Name: "l", Kind: sluice.Bucket, Size: 7, Window: time.Hour}, 7, ratelimit.RateLimitResponse_RateLimit_HOUR, 6},
	} {
		s := envoy.New(envoy.Options{Gate: openGate(t, c.limit)})
		d := ask(t, s, question(entries())).GetStatuses()[0]
		if l := d.GetCurrentLimit(); l.GetRequestsPerUnit() != c.rate || l.GetUnit() != c.unit || d.GetLimitRemaining() != c.remaining {
			t.Errorf("%+v is %v", c.limit, d)
		}
	}
}

// An invalid question gets an error with a reason, and is logged once: Envoy would silently let such requests go.
func TestQuestionsThatMeanNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := envoy.New(envoy.Options{Gate: openGate(t, sluice.Limit{Name: "l", Size: 5, Window: time.Minute}), Log: slog.New(slog.NewTextHandler(&log, nil))})
	many := entries()
	for range 65 {
		many.Entries = append(many.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: "k", Value: "v"})
	}
	for name, c := range map[string]struct {
		q    *ratelimit.RateLimitRequest
		code codes.Code
		text string
	}{
		"no domain":      {&ratelimit.RateLimitRequest{Descriptors: question(entries()).GetDescriptors()}, codes.InvalidArgument, "the domain is missing"},
		"unknown domain": {&ratelimit.RateLimitRequest{Domain: "nothing", Descriptors: question(entries()).GetDescriptors()}, codes.NotFound, `no resource "nothing"`},
		"no descriptors": {question(), codes.InvalidArgument, "there is none"},
		"contradiction":  {question(entries("agent", "a"), entries("agent", "b")), codes.InvalidArgument, "descriptor 2: "},
		"class":          {question(entries("class", "p9")), codes.InvalidArgument, `unknown class "p9"`},
		"amount":         {question(entries("tokens", "-1")), codes.InvalidArgument, `tokens: "-1" is not an amount`},
		"hits":           {question(hits(entries(), 1<<63)), codes.InvalidArgument, "hits_addend"},
		"unit":           {question(entries("unit", "")), codes.InvalidArgument, "unit: it is empty"},
		"entries":        {question(many), codes.InvalidArgument, "it has 65 entries"},
		"negative":       {question(&ratelimit.RateLimitDescriptor{IsNegativeHits: true}), codes.InvalidArgument, "is_negative_hits"},
		"override":       {question(&ratelimit.RateLimitDescriptor{Limit: &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}}), codes.InvalidArgument, "limit: "},
		"long name":      {question(entries("agent", strings.Repeat("x", 70_000))), codes.InvalidArgument, "the name of the agent"},
	} {
		for range 2 {
			if _, err := s.ShouldRateLimit(t.Context(), c.q); status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.text) {
				t.Errorf("%s: %v, want %v with %q", name, err, c.code, c.text)
			}
		}
	}
	if n := strings.Count(log.String(), "no resource"); n != 1 {
		t.Errorf("the log has it %d times", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ShouldRateLimit(gone, question(entries())); status.Code(err) != codes.Canceled {
		t.Errorf("from one who has gone: %v", err)
	}
}

// A reload closes the previous gate: questions go to the new one, and none is lost.
func TestFollow(t *testing.T) {
	t.Parallel()
	first := openGate(t, sluice.Limit{Name: "first", Size: 5, Window: time.Minute})
	s := envoy.New(envoy.Options{Gate: first})
	s.Follow(openGate(t, sluice.Limit{Name: "second", Size: 5, Window: time.Minute}))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if l := ask(t, s, question(entries())).GetStatuses()[0].GetCurrentLimit(); l.GetName() != "second" {
		t.Errorf("it speaks of %v", l)
	}
}

func TestServe(t *testing.T) {
	t.Parallel()
	s := envoy.New(envoy.Options{Gate: openGate(t, sluice.Limit{Name: "l", Size: 1, Window: time.Hour, Kind: sluice.Fixed})})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, nil) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := ratelimit.NewRateLimitServiceClient(conn)
	for _, want := range []ratelimit.RateLimitResponse_Code{ratelimit.RateLimitResponse_OK, ratelimit.RateLimitResponse_OVER_LIMIT} {
		if a, err := client.ShouldRateLimit(t.Context(), question(entries("agent", "a"))); err != nil || a.GetOverallCode() != want {
			t.Errorf("%v, %v, want %v", a, err, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Names of one class of models had a meter each, apart from that of the proxy's requests.
func TestModelsOfAClassShareTheirLimit(t *testing.T) {
	t.Parallel()
	s := envoy.New(envoy.Options{
		Gate:  openGate(t, sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 2, Window: time.Minute, Per: []sluice.Scope{sluice.PerModel}}),
		Model: func(_, model string) string { return strings.TrimPrefix(model, "claude-") },
	})
	for i, model := range []string{"opus", "claude-opus", "opus", "haiku"} {
		want := ratelimit.RateLimitResponse_OK
		if i == 2 {
			want = ratelimit.RateLimitResponse_OVER_LIMIT
		}
		if a := ask(t, s, question(entries("agent", "web", "model", model))); a.GetOverallCode() != want {
			t.Errorf("request %d, %s: %v", i, model, a.GetOverallCode())
		}
	}
}
