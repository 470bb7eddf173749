package sluice_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
)

// BenchmarkCheckIn measures one heartbeat in a fleet of 10,000 agents that send them in turn.
func BenchmarkCheckIn(b *testing.B) {
	for _, resources := range []int{1, 15} {
		for _, scheme := range []string{"mem:", "file:"} {
			b.Run(fmt.Sprintf("%s%d", scheme, resources), func(b *testing.B) { benchmarkCheckIn(b, scheme, resources) })
		}
	}
}

func benchmarkCheckIn(b *testing.B, scheme string, resources int) {
	const agents = 10_000
	c := sluice.Config{Store: scheme, Resources: map[string]sluice.Resource{}}
	if scheme == "file:" {
		c.Store += b.TempDir()
	}
	for i := range resources {
		c.Resources[fmt.Sprintf("api-%02d", i)] = sluice.Resource{Limits: []sluice.Limit{hundred()}}
	}
	g, ctx := openConfig(b, c), context.Background()
	member := func(i int) sluice.JoinRequest { return sluice.JoinRequest{Agent: fmt.Sprintf("agent-%05d", i%agents)} }
	for i := range agents {
		if err := g.Heartbeat(ctx, member(i)); err != nil {
			b.Fatal(err)
		}
	}
	i := 0
	for b.Loop() {
		if _, err := inside.Of(g).CheckIn(ctx, member(i)); err != nil {
			b.Fatal(err)
		}
		i += 7919
	}
}
