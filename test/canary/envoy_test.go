//go:build linux

package canary_test

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/sluicehq/sluice/envoy/ratelimit"
	"github.com/sluicehq/sluice/internal/proctest"
)

var envoyAt = regexp.MustCompile(`rate limit service is on ([0-9.:]+)`)

// envoy asks the rate limit service about requests with a key.
func (r *rig) envoy(d *daemon) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), proctest.Patience)
	defer cancel()
	at := envoyAt.FindStringSubmatch(d.log.String())
	for ; at == nil && ctx.Err() == nil; at = envoyAt.FindStringSubmatch(d.log.String()) {
		time.Sleep(10 * time.Millisecond) // the log follows
	}
	if at == nil {
		r.Error("the log does not say where the rate limit service is")
		return
	}
	conn, err := grpc.NewClient(at[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+planted("Metadata"))
	for domain, fine := range map[string]bool{"fine": true, "nowhere": false} {
		q := &ratelimit.RateLimitRequest{Domain: domain, Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{
			{Key: "agent", Value: "a"}, {Key: "key", Value: planted("Descriptor")}, {Key: "authorization", Value: "Bearer " + planted("OtherDescriptor")},
		}}}}
		got, err := ratelimit.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, q)
		if (err == nil) != fine {
			r.Errorf("%s: %v", domain, err)
		}
		r.say("the rate limit service", fmt.Append(nil, got, err))
	}
}
