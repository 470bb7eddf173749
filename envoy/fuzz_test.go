package envoy_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/envoy"
	"github.com/sluicehq/sluice/envoy/ratelimit"
)

// FuzzQuestion asks any question as it comes over the wire: the response has a status for each descriptor, or an error
// that blames the question.
func FuzzQuestion(f *testing.F) {
	s := envoy.New(envoy.Options{Gate: openGate(f,
		sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 1000, Window: time.Minute},
		sluice.Limit{Name: "tokens", Unit: "input_tokens", Kind: sluice.Rolling, Size: 1000, Window: time.Minute})})
	for _, q := range []*ratelimit.RateLimitRequest{
		question(entries("agent", "web", "class", "p1", "user", "u", "model", "m", "tool", "t", "key", "k")),
		question(entries("agent", "web"), hits(entries("unit", "input_tokens"), 5)),
		question(entries("tokens", "-1")), question(entries("agent", "a"), entries("agent", "b")), question(entries("unit", "")),
		question(hits(entries("a", "b"), 1<<63)), {Domain: "none", Descriptors: question(entries()).GetDescriptors()}, {},
	} {
		b, err := proto.Marshal(q)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var q ratelimit.RateLimitRequest
		if proto.Unmarshal(text, &q) != nil {
			return
		}
		a, err := s.ShouldRateLimit(t.Context(), &q)
		if err != nil {
			if c := status.Code(err); c != codes.InvalidArgument && c != codes.NotFound || status.Convert(err).Message() == "" {
				t.Errorf("%v: %v", &q, err)
			}
			return
		}
		if len(a.GetStatuses()) != len(q.GetDescriptors()) || a.GetOverallCode() == ratelimit.RateLimitResponse_UNKNOWN {
			t.Errorf("%v: %v", &q, a)
		}
		if a.GetOverallCode() == ratelimit.RateLimitResponse_OVER_LIMIT && len(a.GetRawBody()) == 0 {
			t.Errorf("%v is refused without a reason", &q)
		}
	})
}
