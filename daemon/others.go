package daemon

import (
	"context"

	"github.com/sluicehq/sluice"
)

// others opens, to look at, pools of the store that the generation's gate does not use: one, or all if none is named.
func (g *generation) others(ctx context.Context, resource string) (*sluice.Gate, error) {
	return sluice.OpenOn(ctx, g.daemon.options.Store, sluice.Config{
		Store: g.gate.Store(), Look: true, Leases: sluice.Leases{Off: true},
		Others: func(pool string) string {
			name := pool
			if _, taken := g.file.Resources[pool]; taken {
				name += sluice.GatePool
			}
			if g.gate.Uses(pool) || resource != "" && resource != name {
				return ""
			}
			return name
		},
	})
}
