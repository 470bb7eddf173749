package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// The ways that workers reach Redis.
const (
	direct    = iota
	viaToxics // two proxies of toxiproxy, one for each half of the workers
	viaRelay  // the relay
)

// The set-ups of Redis.
const (
	single = iota
	sentinel
	cluster
)

// prefix begins the keys of the campaign.
const prefix = "faults"

// rig is what one fault is done to.
type rig struct {
	ctx    context.Context
	rand   *rand.Rand
	fleet  *fleet
	fault  *fault
	self   string
	server *redisrun.Server // of a single one
	watch  *redisrun.Sentinel
	nodes  *redisrun.Cluster
	toxics []*toxic
	relay  *relay

	program func() (string, error) // with a wrong clock
}

// newRig starts what a fault needs. When it fails nothing is left.
func newRig(ctx context.Context, f *fault, fl *fleet, seed uint64) (r *rig, err error) {
	r = &rig{ctx: ctx, fault: f, fleet: fl, self: fl.self, rand: rand.New(rand.NewPCG(seed, 1))}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.stop())
		}
	}()
	opts := redisrun.Options{Lines: f.lines}
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
	return errors.Join(errs...)
}

// url is how a worker reaches Redis.
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

// post is how the worker of a number is started. Those whose number is even are one machine, the others
// another; a part of each listens to its gate, which makes it work in another way.
func (r *rig) post(worker int) post {
	return post{url: r.url(worker), mode: r.fault.mode, machine: worker % 2, events: worker/2%2 == 1, lease: r.fault.lease}
}

// servers are those that keep data.
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

// sleep lets time pass, or returns an error if the campaign is to end.
func (r *rig) sleep(d time.Duration) error {
	pause(r.ctx, d)
	return r.ctx.Err()
}

// until waits for something, for as long as that may take. It is no error if it does not come.
func (r *rig) until(within time.Duration, done func() bool) error {
	for end := time.Now().Add(within); !done() && time.Now().Before(end); {
		if err := r.sleep(100 * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// do sends a command to a single server.
func (r *rig) do(args ...string) error {
	if _, err := r.server.Do(r.ctx, args...); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// eternal returns keys that would never expire.
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
