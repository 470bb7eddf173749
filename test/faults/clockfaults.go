package main

import (
	"fmt"
	"time"
)

// clockFaults returns the faults of the wall clock by which Redis decides.
func clockFaults() []*fault {
	steps := func(each ...time.Duration) func(r *rig) error {
		return func(r *rig) error { return r.setClock(each) }
	}
	const ms = time.Millisecond
	return []*fault{
		{name: "clock-back", what: "the clock of Redis is set back by 0.1 s, 0.5 s, 2 s and 3 s", clock: true, do: steps(-100*ms, -500*ms, -2*time.Second, -3*time.Second)},
		{name: "clock-far-back", what: "the clock of Redis is set back by 5 s, 30 s and an hour", clock: true, do: steps(-5*time.Second, -30*time.Second, -time.Hour)},
		{name: "clock-far-forward", what: "the clock of Redis is set forward by 5 s, 30 s and an hour", clock: true, do: steps(5*time.Second, 30*time.Second, time.Hour)},
		{name: "clock-forward", what: "the clock of Redis is set forward by 0.1 s, 0.5 s, 1.5 s and 2 s", clock: true, do: steps(100*ms, 500*ms, 1500*ms, 2*time.Second)},
		{name: "clock-to-and-fro", what: "the clock of Redis is set 30 times within 6 s, by 0.1 s to an hour, forward and back", clock: true, do: func(r *rig) error {
			return r.every(200*time.Millisecond, 6*time.Second, func() error {
				r.clock.step(randomStep(r.rand))
				return nil
			})
		}},
		{name: "clock-drifts", what: "the clock of Redis gains 1% for 5 s, then loses 1% for 5 s", clock: true, do: func(r *rig) error {
			defer r.clock.drift(0)
			for _, millionths := range []int64{10_000, -10_000} {
				r.clock.drift(millionths)
				if err := r.sleep(5 * time.Second); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

// setClock sets the clock of Redis, step by step. What a step has brought shows within a window.
func (r *rig) setClock(steps []time.Duration) error {
	for _, d := range steps {
		r.clock.step(d)
		if err := r.sleep(window + 500*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// checkClock makes sure that Redis goes by the clock. It runs before anything is in Redis.
func (r *rig) checkClock() error {
	read := func() (seconds int64, err error) {
		text, err := r.server.Do(r.ctx, "TIME")
		if err == nil {
			_, err = fmt.Sscan(text, &seconds)
		}
		return seconds, err
	}
	before, err := read()
	if err != nil {
		return err
	}
	r.clock.step(24 * time.Hour)
	defer r.clock.step(-24 * time.Hour)
	if after, err := read(); err != nil || after-before < 86_000 {
		return fmt.Errorf("the clock of Redis cannot be set: %d, a day later %d, error %w", before, after, err)
	}
	return nil
}
