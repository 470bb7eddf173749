package main

import (
	"errors"
	"time"
)

// netFaults returns the faults of the network.
func netFaults() []*fault {
	return []*fault{
		{name: "none", what: "nothing happens", do: func(r *rig) error { return r.sleep(2 * time.Second) }, rules: inOrder},
		{name: "latency", what: "every packet takes 50 ms more, give or take 20, each way", via: viaToxics, do: latency},
		{name: "slow-link", what: "32 KB a second to each client, in pieces of 64 bytes", via: viaToxics, do: slowLink},
		{name: "resets", what: "all connections are reset, again and again", via: viaToxics, do: resets},
		{name: "black-hole-3s", what: "nothing passes for 3 s; connections stay open", via: viaToxics, do: blackHole(3 * time.Second)},
		{name: "black-hole-15s", what: "the same for 15 s, longer than the processes' lease of 12 s", via: viaToxics, lease: 12 * time.Second, do: blackHole(15 * time.Second)},
		{name: "black-hole-closed", what: "nothing passes for 5 s, with on_store_failure: closed", via: viaToxics, mode: "closed", do: blackHole(5 * time.Second), rules: grantsNothing},
		{name: "black-hole-open", what: "the same, with on_store_failure: open: limits are not kept meanwhile", via: viaToxics, mode: "open", do: blackHole(5 * time.Second)},
		{name: "refused", what: "the port is closed for 4 s, connections are cut", via: viaToxics, do: refused},
		{name: "cut-off-half", what: "half of the workers are cut off for 12 s, the others are not", via: viaToxics, do: cutOffHalf, rules: goesOn},
		{name: "half-open", what: "connections stay open but pass nothing, three times; new ones work", via: viaRelay, do: halfOpen},
	}
}

// onAll adds a toxic to both proxies.
func (r *rig) onAll(kind, stream string, a attributes) error {
	for _, t := range r.toxics {
		if err := t.add(kind, stream, a); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) clearAll() error {
	var errs []error
	for _, t := range r.toxics {
		errs = append(errs, t.clear())
	}
	return errors.Join(errs...)
}

// meanwhile adds toxics to both proxies, waits and removes them.
func (r *rig) meanwhile(d time.Duration, add func() error) error {
	if err := add(); err != nil {
		return err
	}
	return errors.Join(r.sleep(d), r.clearAll())
}

func latency(r *rig) error {
	return r.meanwhile(4*time.Second, func() error {
		slow := attributes{"latency": 50, "jitter": 20}
		return errors.Join(r.onAll("latency", toServer, slow), r.onAll("latency", toClient, slow))
	})
}

func slowLink(r *rig) error {
	return r.meanwhile(4*time.Second, func() error {
		return errors.Join(
			r.onAll("slicer", toClient, attributes{"average_size": 64, "size_variation": 32, "delay": 100}),
			r.onAll("bandwidth", toClient, attributes{"rate": 32}),
		)
	})
}

func resets(r *rig) error {
	return r.every(300*time.Millisecond, 4*time.Second, func() error {
		return r.meanwhile(100*time.Millisecond, func() error { return r.onAll("reset_peer", toClient, attributes{"timeout": 0}) })
	})
}

// hole blocks all data in both directions.
func (t *toxic) hole() error {
	return errors.Join(t.add("timeout", toServer, attributes{"timeout": 0}), t.add("timeout", toClient, attributes{"timeout": 0}))
}

func blackHole(d time.Duration) func(r *rig) error {
	return func(r *rig) error {
		return r.meanwhile(d, func() error { return errors.Join(r.toxics[0].hole(), r.toxics[1].hole()) })
	}
}

func refused(r *rig) error {
	for _, t := range r.toxics {
		t.disable()
	}
	err := r.sleep(4 * time.Second)
	for _, t := range r.toxics {
		if e := t.enable(); e != nil {
			return e
		}
	}
	return err
}

func cutOffHalf(r *rig) error {
	t := r.toxics[1]
	if err := t.hole(); err != nil {
		return err
	}
	return errors.Join(r.sleep(12*time.Second), t.clear())
}

func halfOpen(r *rig) error {
	return r.every(1500*time.Millisecond, 4*time.Second, func() error {
		r.relay.freezeAll()
		return nil
	})
}

// stalled is the delay of timers, or of Redis waiting for a processor, from which on a busy machine alone may make
// Redis seem unreachable.
const stalled = 200 * time.Millisecond

// inOrder is the rule for runs without a fault: no store errors.
func inOrder(x *run) {
	if n := x.Errors["store"]; n > 0 && max(x.ledger.late, x.starved) < stalled {
		x.broke("without a fault there were %d errors of the store; timers were late by at most %v, and Redis waited at most %v of 500ms for a processor", n, round(x.ledger.late), round(x.starved))
	}
}

// settled is how long after the start of the fault a pending request may still be answered. The longest delay of a
// timer comes on top.
const settled = 200 * time.Millisecond

// grantsNothing is the rule for on_store_failure: closed. Nothing may be granted while the store is unreachable.
func grantsNothing(x *run) {
	n := 0
	for _, u := range x.ledger.uses {
		if u.used > x.began.add(settled+x.ledger.late) && u.used < x.over {
			n++
		}
	}
	if n > 0 {
		x.broke("%d requests were let go without the store", n)
	}
}

// sharedBy is when a process that is cut off must have begun to use its share: after 3 s without a reply, the slack, a
// window and one more second.
const sharedBy = 3*time.Second + time.Second + window + time.Second

// goesOn is the rule for on_store_failure: share. Workers that are cut off must go on.
func goesOn(x *run) {
	n := 0
	for _, u := range x.ledger.usesOf(rolling) {
		if u.worker%2 == 1 && u.used > x.began.add(sharedBy) && u.used < x.over {
			n++
		}
	}
	if n == 0 {
		x.broke("the workers that were cut off have let nothing go")
	}
}
