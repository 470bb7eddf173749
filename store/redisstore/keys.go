package redisstore

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisurl"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// Other programs may have many keys in the same Redis. So Pools takes at most mostSteps steps on each server.
const (
	keysAtOnce = 1000
	mostSteps  = 200
)

// Pools implements [sharedlog.Engine].
func (e *Engine) Pools(ctx context.Context) (names []string, whole bool, err error) {
	if err := e.enter(ctx); err != nil {
		return nil, false, err
	}
	defer e.busy.Done()
	before, after := e.address.Prefix+":{", "}"
	found, whole := map[string]bool{}, true
	for _, node := range e.nodes() { // replicas repeat the keys of their masters
		all, err := e.scan(ctx, node, escapeGlob(before)+"*"+after, found)
		if err != nil {
			return nil, false, err
		}
		whole = whole && all
	}
	for key := range found {
		names = append(names, unescape(strings.TrimSuffix(strings.TrimPrefix(key, before), after)))
	}
	slices.Sort(names)
	return names, whole, nil
}

// scan adds the keys of one server that match a pattern. It reports false if it gave up.
func (e *Engine) scan(ctx context.Context, node rueidis.Client, pattern string, found map[string]bool) (bool, error) {
	var cursor uint64
	for range mostSteps {
		entry, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(keysAtOnce).Build()).AsScanEntry()
		if err != nil {
			return false, e.fail(err)
		}
		for _, key := range entry.Elements {
			found[key] = true
		}
		if cursor = entry.Cursor; cursor == 0 {
			return true, nil
		}
	}
	return false, nil
}

// nodes returns the servers that have keys.
func (e *Engine) nodes() []rueidis.Client {
	if e.address.Mode != redisurl.Cluster {
		return []rueidis.Client{e.client}
	}
	return slices.Collect(maps.Values(e.client.Nodes()))
}

// escapeGlob returns a glob pattern that matches only s.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(s)
}

// escape writes the name of a pool so that it has no }, which would end the part of a key that chooses its slot.
func escape(pool string) string { return strings.NewReplacer("%", "%25", "}", "%7D").Replace(pool) }

func unescape(name string) string { return strings.NewReplacer("%7D", "}", "%25", "%").Replace(name) }

// Secret implements [sharedlog.Engine].
func (e *Engine) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	key := e.address.Prefix + ":secret:" + name
	got, err := e.do(ctx, e.client.B().Set().Key(key).Value(hex.EncodeToString(fresh)).Nx().Build(), e.client.B().Get().Key(key).Build())
	if err != nil {
		return nil, err
	}
	text, err := got[1].ToString()
	if err != nil {
		return nil, e.fail(err)
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != store.SecretSize {
		return nil, &Error{kind: sharedlog.ErrDamaged, at: e.name, what: "the key " + key + " does not hold a secret", hint: "delete it, and Sluice makes a new one"}
	}
	return secret, nil
}
