package redisstore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

var _ sharedlog.Shared = (*Engine)(nil)

// Place implements [sharedlog.Shared].
func (e *Engine) Place(pool string) string { return e.headOf(pool) }

// Aside implements [sharedlog.Shared]. The hash goes first: without it there is no log, and what else is there belongs to
// none.
func (e *Engine) Aside(ctx context.Context, pool string) (string, error) {
	if err := e.enter(ctx); err != nil {
		return "", err
	}
	defer e.busy.Done()
	head, base := e.headOf(pool), e.base(pool)
	aside := head + ":damaged-" + time.Now().UTC().Format("20060102T150405.000000Z")
	if err := e.rename(ctx, head, aside); err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, node := range e.nodes() {
		if _, err := e.scan(ctx, node, escapeGlob(base)+"*", found); err != nil {
			return "", err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if rest := strings.TrimPrefix(key, base); !strings.HasPrefix(rest, "damaged-") {
			if err := e.rename(ctx, key, aside+":"+rest); err != nil {
				return "", err
			}
		}
	}
	return aside, nil
}

// rename renames a key of any kind, if it is there, and has it expire.
func (e *Engine) rename(ctx context.Context, from, to string) error {
	got, err := e.do(ctx, e.client.B().Renamenx().Key(from).Newkey(to).Build())
	if err == nil {
		err = got[0].Error()
	}
	switch {
	case err != nil && strings.Contains(err.Error(), "no such key"): // another process was first, or it has expired
		return nil
	case err != nil && !rueidis.IsRedisNil(err):
		return e.fail(err)
	}
	_, err = e.do(ctx, e.client.B().Pexpire().Key(to).Milliseconds(sharedlog.KeepAside.Milliseconds()).Build())
	return err
}
