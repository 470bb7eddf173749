package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// damageError reports that the key of a pool holds something that Sluice does not write.
type damageError struct {
	key, pool string
	found     string
	cause     error
}

func (e *damageError) Error() string {
	return fmt.Sprintf("the key %q in Redis is damaged: %s", e.key, e.found)
}

func (e *damageError) Unwrap() []error { return []error{store.ErrUnavailable, e.cause} }

// Hint says how to repair the pool.
func (e *damageError) Hint() string {
	repair := store.RepairCommand(e.pool)
	if errors.Is(e.cause, errFormat) {
		return "use the same version everywhere, or give this one a prefix of its own: ?prefix=NAME; if the other version is gone: " + repair
	}
	return repair
}

// errDamaged is the cause of a damageError that has no other cause.
var errDamaged = errors.New("it is damaged")

func (st *state) damaged(found string, cause error) error {
	return &damageError{key: st.key, pool: st.name, found: found, cause: cause}
}

// trouble turns an error of a script into a damageError, and marks any other as store.ErrUnavailable. Scripts fail only on
// content that Sluice did not write.
func (st *state) trouble(err error) error {
	if e, ok := errors.AsType[*damageError](err); err == nil || ok && e != nil {
		return err
	}
	if e, ok := errors.AsType[*redisconn.Error](err); ok && e.Fault == redisconn.FaultScript {
		return st.damaged(inScript(e.Error()), err)
	}
	return unavailable(err)
}

// inScript describes what a failed script found, from its error text.
func inScript(text string) string {
	if _, field, ok := strings.Cut(text, "sluice: damaged field "); ok {
		field, _, _ = strings.Cut(field, " script: ") // the position in the script follows
		field, _, _ = strings.Cut(field, " at function")
		if field, missing := strings.CutSuffix(strings.TrimSpace(strings.TrimSuffix(field, ".")), ": missing"); missing {
			return "the field " + field + " is missing"
		}
		return "the field " + strings.TrimSpace(strings.TrimSuffix(field, ".")) + " has foreign content"
	}
	return "it has foreign content (" + text + whereIn(applySource(), text) + ")"
}

// inLine matches how Redis names the line at which a script failed. In a function, one line precedes the source.
var inLine = lazyregexp.New(`user_(function|script):\s?(\d+)`)

// function matches the line at which a translated function begins, with the position of its Go source.
var function = lazyregexp.New(`^F\.(\w+) = function\(.* -- (.+)$`)

// whereIn returns the function in which a script failed and the position of its Go source, or "".
func whereIn(source, text string) string {
	m := inLine.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	at, _ := strconv.Atoi(m[2])
	if m[1] == "function" {
		at--
	}
	lines := strings.Split(source, "\n")
	for i := min(at, len(lines)) - 1; i > 0; i-- {
		if f := function.FindStringSubmatch(lines[i]); f != nil {
			return "; in " + f[1] + ", " + f[2]
		}
	}
	return ""
}

const (
	asideFor = 7 * 24 * time.Hour // how long a damaged pool is kept aside for inspection
	lostFor  = 24 * time.Hour     // how long the mark of a lost pool is kept; earlier charges no longer count then, see shortestTTL
)

// Repair implements [store.Repairer].
func (s *Store) Repair(ctx context.Context, name string, move bool) (store.Repair, error) {
	st := newState(s, name)
	defer st.stop()
	r := store.Repair{What: "key", At: st.key}
	err := st.inspect(ctx)
	var damage *damageError
	if !errors.As(err, &damage) {
		return r, err
	}
	if r.Damage = damage.found; !move {
		return r, nil
	}
	// The epoch is higher than any that a process knows, so that every process states again what it holds.
	now := time.Now()
	aside := fmt.Sprintf("%s:damaged-%s", st.key, now.UTC().Format("20060102T150405.000000Z"))
	args := s.withClock([]string{"aside", fmt.Sprint(asideFor.Milliseconds()), fmt.Sprint(now.Unix()), fmt.Sprint(lostFor.Milliseconds())})
	reply, err := s.redis.RunKeys(ctx, s.manage, []string{st.key, aside}, args...)
	if err != nil {
		return r, unavailable(err)
	}
	if reply == "ok" {
		r.Aside = aside
	} // else another process has repaired it meanwhile
	return r, nil
}

// inspect reads the whole pool. It returns a damageError if it finds anything that Sluice does not write.
func (st *state) inspect(ctx context.Context) error {
	v, err := st.look(ctx)
	if err != nil || !v.exists {
		return err
	}
	if _, err := pool.FromSpec(v.text, v.once); err != nil {
		return st.damaged(err.Error(), err)
	}
	_, err = st.read(ctx)
	return err
}
