package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// How workers reach Redis.
const (
	direct    = iota
	viaToxics // through two toxiproxies, one for each half of the workers
	viaRelay  // through the relay
)

// The set-ups of Redis.
const (
	single = iota
	sentinel
	cluster
)

// prefix is the prefix of the campaign's Redis keys.
const prefix = "faults"

// rig is the set-up for one fault.
type rig struct {
	ctx    context.Context
	rand   *rand.Rand
	fleet  *fleet
	fault  *fault
	self   string
	server *redisrun.Server // if the set-up is single
	watch  *redisrun.Sentinel
	nodes  *redisrun.Cluster
	toxics []*toxic
	relay  *relay
	clock  *stepClock // of the server, if the fault sets it

	program func() (string, error) // builds this program with a wrong clock
}

// newRig starts the set-up. If it fails, it stops what it has started.
func newRig(ctx context.Context, f *fault, fl *fleet, seed uint64) (r *rig, err error) {
	r = &rig{ctx: ctx, fault: f, fleet: fl, self: fl.self, rand: rand.New(rand.NewPCG(seed, 1))}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	opts := redisrun.Options{Lines: f.lines}
	if f.clock {
		shim, err := buildShim(ctx, fl.dir)
		if err != nil {
			return r, err
		}
		if r.clock, err = newStepClock(filepath.Join(fl.dir, "clock")); err != nil {
			return r, err
		}
		opts.Env = []string{"LD_PRELOAD=" + shim, r.clock.env()}
	}
	switch f.setup {
	case sentinel:
		r.watch, err = redisrun.StartSentinel(opts)
	case cluster:
		r.nodes, err = redisrun.StartCluster(3, opts)
	default:
		r.server, err = redisrun.Start(opts)
	}
	if err != nil {
		return r, err
	}
	if r.clock != nil {
		if err = r.checkClock(); err != nil {
			return r, err
		}
	}
	switch f.via {
	case viaToxics:
		for range 2 {
			t, err := startToxic(r.server.Addr())
			if err != nil {
				return r, err
			}
			r.toxics = append(r.toxics, t)
		}
	case viaRelay:
		r.relay, err = startRelay(r.server.Addr())
	}
	return r, err
}

func (r *rig) stop() error {
	for _, t := range r.toxics {
		t.stop()
		if t.replaced > 0 {
			r.fleet.ledger.note("toxiproxy was stuck, and replaced: connections were cut on the way")
		}
	}
	var errs []error
	if r.relay != nil {
		errs = append(errs, r.relay.stop())
	}
	if r.server != nil {
		errs = append(errs, r.server.Stop())
	}
	if r.watch != nil {
		errs = append(errs, r.watch.Stop())
	}
	if r.nodes != nil {
		errs = append(errs, r.nodes.Stop())
	}
	if r.clock != nil {
		errs = append(errs, r.clock.close())
	}
	return errors.Join(errs...)
}

// url returns the store's URL for a worker.
func (r *rig) url(worker int) string {
	var at string
	switch {
	case r.watch != nil:
		at = r.watch.URL()
	case r.nodes != nil:
		at = r.nodes.URL()
	case r.relay != nil:
		at = "redis://" + r.relay.addr()
	case len(r.toxics) > 0:
		at = "redis://" + r.toxics[worker%len(r.toxics)].addr()
	default:
		at = r.server.URL()
	}
	at += "?prefix=" + prefix
	if r.fault.params != "" {
		at += "&" + r.fault.params
	}
	return at
}

// post returns how to start a worker. Workers with even numbers form one machine, the others a second one. Some workers
// of each listen to their gate's events, because the gate works differently then.
func (r *rig) post(worker int) post {
	return post{url: r.url(worker), mode: r.fault.mode, machine: worker % 2, events: worker/2%2 == 1, lease: r.fault.lease}
}

// servers returns the Redis servers that hold data.
func (r *rig) servers() []*redisrun.Server {
	switch {
	case r.watch != nil:
		return []*redisrun.Server{r.watch.Master()}
	case r.nodes != nil:
		return r.nodes.Nodes()
	default:
		return []*redisrun.Server{r.server}
	}
}

// sleep waits. It returns an error if the campaign was interrupted.
func (r *rig) sleep(d time.Duration) error {
	pause(r.ctx, d)
	return r.ctx.Err()
}

// until waits until done returns true, but at most for the given time. A timeout is not an error.
func (r *rig) until(within time.Duration, done func() bool) error {
	for end := time.Now().Add(within); !done() && time.Now().Before(end); {
		if err := r.sleep(100 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// do sends a command to the single server.
func (r *rig) do(args ...string) error {
	if _, err := r.server.Do(r.ctx, args...); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// eternal returns the keys that never expire.
func (r *rig) eternal() (keys []string, err error) {
	for _, s := range r.servers() {
		if s == nil {
			return nil, errors.New("no sentinel names a master")
		}
		text, err := s.Do(r.ctx, "KEYS", "*")
		if err != nil {
			return nil, err
		}
		for key := range strings.Lines(text) {
			key = strings.TrimSuffix(key, "\n")
			ttl, err := s.Do(r.ctx, "PTTL", key)
			if err != nil {
				return nil, err
			}
			if ttl == "-1" {
				keys = append(keys, key)
			}
		}
	}
	return keys, nil
}
