package logstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

var _ store.Repairer = (*Store)(nil)

// damageError reports that what the engine keeps of a pool is not a log, or that of another version.
type damageError struct {
	pool string
	err  error
}

func (e *damageError) Error() string { return e.err.Error() }
func (e *damageError) Unwrap() error { return e.err }

// what returns what is damaged, without the address of the engine if that is known apart.
func (e *damageError) what() string {
	var apart interface{ What() string }
	if errors.As(e.err, &apart) {
		return apart.What()
	}
	return e.Error()
}

// Hint says how to repair the pool.
func (e *damageError) Hint() string {
	repair := store.RepairCommand(e.pool)
	if isForeign(e.err) {
		return "use the same version of Sluice everywhere, or give this one a prefix of its own: ?prefix=NAME; if the other version is gone: " + repair
	}
	return repair
}

// isForeign reports whether an error means that another release wrote the log.
func isForeign(err error) bool {
	return errors.Is(err, sharedlog.ErrFormat) || errors.Is(err, replica.ErrVersion)
}

// judged makes an error about what the log consists of a damageError.
func (st *state) judged(err error) error {
	if errors.Is(err, sharedlog.ErrDamaged) || isForeign(err) {
		return &damageError{st.name, err}
	}
	return err
}

// Repair implements [store.Repairer]. Processes that know the log heal it; without them the pool starts again.
func (s *Store) Repair(ctx context.Context, name string, move bool) (store.Repair, error) {
	engine, ok := s.engine.(sharedlog.Shared)
	if !ok {
		return store.Repair{}, errors.New("nothing can damage the logs of this engine")
	}
	r := store.Repair{What: "key", At: engine.Place(name)}
	err := s.inspect(ctx, name)
	var damage *damageError
	if !errors.As(err, &damage) {
		return r, err
	}
	r.Damage = damage.what()
	if !move {
		return r, nil
	}
	if r.Aside, err = engine.Aside(ctx, name); err != nil {
		return r, Unavailable(err)
	}
	return r, s.noteLoss(ctx, name)
}

// inspect reads the whole log of a pool.
func (s *Store) inspect(ctx context.Context, name string) error {
	st := newState(s, name, true)
	defer st.stop()
	if err := st.load(ctx); err != nil && !errors.Is(err, errMoved) {
		return Unavailable(st.judged(err))
	}
	return nil
}

// noteLoss has the next log of a pool say that an earlier one was lost, unless a process that knew it begins the next one.
func (s *Store) noteLoss(ctx context.Context, name string) error {
	st := newState(s, name, true)
	defer st.stop()
	if err := st.persist(st.load); err != nil || !st.found.Created {
		return err
	}
	for _, kind := range []replica.Kind{replica.Forget, replica.Leave} {
		if err := st.ask(ctx, kind); err != nil {
			return fmt.Errorf("the next log could not be told of the loss: %w", err)
		}
	}
	return nil
}

// ask has a request of a kind carried out that has nothing else.
func (st *state) ask(ctx context.Context, kind replica.Kind) error {
	r := st.newRequest()
	r.Request = replica.Request{Kind: kind}
	err := st.do(ctx, r)
	if err == nil {
		st.free(r)
	}
	return err
}
