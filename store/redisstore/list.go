package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// listWithin bounds how long listing pools takes, and mostSteps how many steps of SCAN it takes on each server: other
// programs may have many keys there.
const (
	listWithin = 3 * time.Second
	mostSteps  = 200
)

// Pools implements [store.Lister].
func (s *Store) Pools(ctx context.Context) (list store.Listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	before, after := s.prefix+":{", "}"
	keys, whole, err := s.redis.Keys(ctx, escapeGlob(before)+"*"+after, mostSteps)
	if err != nil {
		return list, unavailable(err)
	}
	if !whole {
		list.Skip("Redis has so many keys that not all were looked at: there may be more pools")
	}
	slices.Sort(keys)
	for _, key := range keys {
		name := strings.TrimSuffix(strings.TrimPrefix(key, before), after)
		if strings.HasPrefix(name, "(") {
			continue
		}
		spec, exists, err := s.stated(ctx, name)
		if err == nil && !exists {
			continue
		}
		if err != nil && ctx.Err() != nil {
			return list, unavailable(err)
		}
		if err != nil {
			err = fmt.Errorf("pool %.80q: %w", name, err)
		}
		if !list.Add(spec, err) {
			break
		}
	}
	return list, nil
}

// stated returns the spec of a pool as it was stated, and whether the pool exists.
func (s *Store) stated(ctx context.Context, name string) (spec store.Spec, exists bool, err error) {
	st := newState(s, name)
	defer st.stop()
	v, err := st.look(ctx)
	if err != nil || !v.exists {
		return spec, false, err
	}
	core, err := pool.FromSpec(v.text, v.once)
	if err != nil {
		return spec, false, st.damaged(err.Error(), err)
	}
	if spec = core.Stated(); spec.Name != name {
		return spec, false, st.damaged("it holds another pool", errors.New("another name"))
	}
	return spec, true, nil
}

// escapeGlob returns a glob pattern that matches only s.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(s)
}
