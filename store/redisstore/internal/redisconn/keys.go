package redisconn

import (
	"context"
	"maps"
	"slices"

	"github.com/redis/rueidis"
)

// keysAtOnce is how many keys a server scans in one step.
const keysAtOnce = 1000

// Keys returns the keys that match a glob pattern, each once, from all servers of a cluster. It takes at most steps steps
// of SCAN on each server; whole reports that this was enough for all keys.
func (l *Link) Keys(ctx context.Context, pattern string, steps int) (keys []string, whole bool, err error) {
	found, whole := map[string]bool{}, true
	for _, node := range l.nodes() { // replicas may repeat keys of their masters
		var cursor uint64
		for left := steps; ; left-- {
			if left == 0 {
				whole = false
				break
			}
			results, err := l.callAll(ctx, node, node.B().Scan().Cursor(cursor).Match(pattern).Count(keysAtOnce).Build())
			if err != nil {
				return nil, false, l.fail(err)
			}
			entry, err := results[0].AsScanEntry()
			if err != nil {
				return nil, false, l.fail(err)
			}
			for _, key := range entry.Elements {
				found[key] = true
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	return slices.Collect(maps.Keys(found)), whole, nil
}

// nodes returns the servers that have keys.
func (l *Link) nodes() []rueidis.Client {
	if l.address.Mode != Cluster {
		return []rueidis.Client{l.client}
	}
	return slices.Collect(maps.Values(l.client.Nodes()))
}
