package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Kinds of faults that other code looks for in a plan.
const (
	killRedis  = "redis-kill"
	reloadKind = "reload"
)

// The stores on which faults can happen. The memory store ends with its process, so killing that process tests nothing.
var (
	shared  = []string{onFile, onRedis, onDaemon}
	redis   = []string{onRedis}
	daemons = []string{onDaemon}
	linked  = []string{onRedis, onDaemon}
	disks   = []string{onFile, onDaemon}
)

// upgradeKind is in a plan once for each gate that starts with the previous release.
var upgradeKind = &chaosKind{name: "upgrade", what: "the gate is replaced by this version", do: func(w *world, s chaosStep) error {
	return w.gates[s.gate].replace(w.program, syscall.SIGTERM, s.lasts)
}}

// clockKind sets the wall clock of the machine that all gates and the daemon run on, by 0.1 s to an hour, or lets it gain or
// lose 1%. Plans have it besides the kinds that they draw from.
var clockKind = &chaosKind{name: "clock", what: "the machine's clock is set, or drifts by 1%", stores: []string{onFile, onDaemon, onMemory}, do: func(w *world, s chaosStep) error {
	r := rand.New(rand.NewPCG(uint64(s.pick), 11))
	w.clocks.Lock()
	defer w.clocks.Unlock()
	if r.IntN(4) == 0 {
		w.clock.drift(10_000 * int64(1-2*r.IntN(2)))
		return nil
	}
	w.clock.step(randomStep(r))
	return nil
}}

// chaosKinds returns the kinds that a plan draws from. Their order determines what a seed means.
func chaosKinds() []*chaosKind {
	return append(append(gateKinds(), storeKinds()...), providerKinds()...)
}

func gateKinds() []*chaosKind {
	return []*chaosKind{
		{name: "kill", what: "kill -9 of the gate", stores: shared, longest: time.Second, kills: true, do: func(w *world, s chaosStep) error {
			return w.gates[s.gate].replace("", syscall.SIGKILL, s.lasts)
		}},
		{name: "stop", what: "SIGSTOP of the gate, then SIGCONT", longest: 3 * time.Second, do: func(w *world, s chaosStep) error { return w.freeze(w.gates[s.gate], s.lasts) }},
		{name: "restart", what: "SIGTERM of the gate, and a new start", stores: shared, longest: 500 * time.Millisecond, do: func(w *world, s chaosStep) error {
			return w.gates[s.gate].replace("", syscall.SIGTERM, s.lasts)
		}},
		{name: "descriptors", what: "the gate can open no more files", longest: 2 * time.Second, do: func(w *world, s chaosStep) error {
			return w.bound(s.lasts, unix.RLIMIT_NOFILE, w.gates[s.gate])
		}},
		{name: "memory", what: "the gate gets no more memory", stores: shared, longest: time.Second, kills: true, do: func(w *world, s chaosStep) error {
			return w.bound(s.lasts, unix.RLIMIT_AS, w.gates[s.gate])
		}},
		{name: reloadKind, what: "another configuration: a smaller limit, a mistake, or another agent; then the first again", longest: 2 * time.Second, do: reloads},
		{name: "disk-full", what: "no file can grow", stores: disks, longest: 2 * time.Second, do: func(w *world, s chaosStep) error {
			return w.bound(s.lasts, unix.RLIMIT_FSIZE, w.all()...)
		}},
	}
}

func storeKinds() []*chaosKind {
	onServer := func(begin, end func(w *world) error) func(*world, chaosStep) error {
		return func(w *world, s chaosStep) error {
			w.store.Lock() // one fault at a time
			defer w.store.Unlock()
			err := begin(w)
			w.sleep(s.lasts)
			return errors.Join(err, end(w))
		}
	}
	command := func(args ...string) func(w *world) error {
		return func(w *world) error { return w.redis(args...) }
	}
	return []*chaosKind{
		{name: killRedis, what: "kill -9 of Redis", stores: redis, longest: 2 * time.Second, loses: true,
			do: onServer(func(w *world) error { return w.server.Kill() }, func(w *world) error { return w.server.Restart() })},
		{name: "redis-stop", what: "SIGSTOP of Redis, then SIGCONT", stores: redis, longest: 3 * time.Second,
			do: onServer(func(w *world) error { return w.server.Pause() }, func(w *world) error { return w.server.Resume() })},
		{name: "redis-flush", what: "FLUSHALL", stores: redis, longest: time.Second, loses: true, do: onServer(command("FLUSHALL"), nothing)},
		{name: "redis-scripts", what: "SCRIPT FLUSH and FUNCTION FLUSH", stores: redis, longest: time.Second, do: onServer(command("SCRIPT", "FLUSH"), command("FUNCTION", "FLUSH"))},
		{name: "redis-full", what: "Redis is out of memory", stores: redis, longest: 2 * time.Second, do: onServer(command("CONFIG", "SET", "maxmemory", "1mb"), command("CONFIG", "SET", "maxmemory", "0"))},
		{name: "redis-listeners", what: "connections that listen for messages are cut", stores: redis, longest: time.Second, do: onServer(command("CLIENT", "KILL", "TYPE", "pubsub"), nothing)},
		{name: "replies-lost", what: "replies of Redis are lost", stores: redis, longest: 2 * time.Second, do: func(w *world, s chaosStep) error { return w.replies(s, action{swallow: true}) }},
		{name: "replies-late", what: "replies of Redis are late", stores: redis, longest: 2 * time.Second, do: func(w *world, s chaosStep) error {
			return w.replies(s, action{hold: time.Duration(s.pick%1000) * time.Millisecond})
		}},
		{name: "half-open", what: "connections to Redis are silently dead", stores: redis, longest: time.Second, do: func(w *world, s chaosStep) error {
			w.relay.freezeAll()
			w.sleep(s.lasts)
			return nil
		}},
		{name: "daemon-kill", what: "kill -9 of the daemon that has the store", stores: daemons, longest: 2 * time.Second, kills: true, do: func(w *world, s chaosStep) error {
			return w.daemon.replace("", syscall.SIGKILL, s.lasts)
		}},
		{name: "daemon-stop", what: "SIGSTOP of the daemon, then SIGCONT", stores: daemons, longest: 3 * time.Second, do: func(w *world, s chaosStep) error { return w.freeze(w.daemon, s.lasts) }},
		{name: "daemon-restart", what: "SIGTERM of the daemon, and a new start", stores: daemons, longest: 500 * time.Millisecond, do: func(w *world, s chaosStep) error {
			return w.daemon.replace("", syscall.SIGTERM, s.lasts)
		}},
		{name: "slow-link", what: "the way to the store is slow", stores: linked, longest: 3 * time.Second, do: func(w *world, s chaosStep) error {
			return w.toxin(s, "latency", attributes{"latency": 1 + s.pick%300, "jitter": s.pick % 100})
		}},
		{name: "partition", what: "nothing passes between some gates and the store", stores: linked, longest: 4 * time.Second, do: func(w *world, s chaosStep) error {
			return w.toxin(s, "timeout", attributes{"timeout": 0})
		}},
		{name: "link-cut", what: "connections of some gates to the store are cut after some bytes", stores: linked, longest: 2 * time.Second, do: func(w *world, s chaosStep) error {
			return w.toxin(s, "limit_data", attributes{"bytes": 1 + s.pick%5000})
		}},
	}
}

func nothing(*world) error { return nil }

func providerKinds() []*chaosKind {
	tell := func(l lie) func(*world, chaosStep) error {
		return func(w *world, s chaosStep) error {
			mine := l
			mine.part, mine.pick = s.part, s.pick
			w.provider.begin(&mine)
			w.sleep(s.lasts)
			w.provider.end(&mine)
			return nil
		}
	}
	return []*chaosKind{
		{name: "late-answers", what: "the provider answers late", longest: 2 * time.Second, do: tell(lie{late: true})},
		{name: "late-arrivals", what: "requests arrive up to 200 ms late", longest: 2 * time.Second, do: tell(lie{arrive: true})},
		{name: "odd-headers", what: "the provider's headers are missing, garbage, or state too much or too little", longest: 2 * time.Second, do: tell(lie{headers: true})},
		{name: "odd-429", what: "the provider refuses without a reason, with odd hints", longest: time.Second, do: tell(lie{refuse: true})},
		{name: "errors", what: "the provider answers 500, 502, 503 or 529", longest: time.Second, do: tell(lie{fail: true})},
		{name: "answers-cut", what: "the provider cuts the connection in the middle of an answer", longest: time.Second, do: tell(lie{cut: true})},
	}
}

// reloads makes all gates load another configuration, and later the first one again.
func reloads(w *world, s chaosStep) error {
	w.configs.Lock() // one fault at a time
	defer w.configs.Unlock()
	err := w.reload(otherConfig(s.pick))
	w.sleep(s.lasts)
	return errors.Join(err, w.reload(chaosSize, ""))
}

// otherConfig returns the limit's size and additional lines for another configuration.
func otherConfig(pick int) (size int, more string) {
	switch pick % 3 {
	case 0:
		return chaosSize/4 + pick%(chaosSize/2), ""
	case 1:
		return chaosSize, "resources: {}\n" // a duplicate key, which is an error
	default:
		return chaosSize, "agents: {\"g0-p0\": {class: p0}}\n"
	}
}

// replies applies an action to a part of the replies of Redis.
func (w *world) replies(s chaosStep, a action) error {
	r := rand.New(rand.NewPCG(uint64(s.pick), 7))
	w.relay.setPlan(func() action {
		if r.Float64() < s.part/2 {
			return a
		}
		return action{}
	})
	w.sleep(s.lasts)
	w.relay.setPlan(nil)
	return nil
}

// toxin adds a toxic to the connections between some or all gates and the store.
func (w *world) toxin(s chaosStep, kind string, a attributes) error {
	w.links.Lock() // one fault at a time, because clear removes all toxics
	defer w.links.Unlock()
	some := w.toxics
	if s.pick%3 > 0 {
		i := s.pick % len(w.toxics)
		some = w.toxics[i : i+1]
	}
	var errs []error
	for _, t := range some {
		errs = append(errs, t.add(kind, toClient, a))
		if kind == "timeout" {
			errs = append(errs, t.add(kind, toServer, a))
		}
	}
	w.sleep(s.lasts)
	for _, t := range some {
		errs = append(errs, t.clear())
	}
	return errors.Join(errs...)
}

// redis sends a command to the Redis server.
func (w *world) redis(args ...string) error {
	if _, err := w.server.Do(w.ctx, args...); err != nil {
		return fmt.Errorf("%v: %w", args, err)
	}
	return nil
}
