package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// clientFaults returns the faults of the processes that acquire.
func clientFaults() []*fault {
	return []*fault{
		{name: "wrong-clocks", what: "processes whose wall clocks are hours off, whose monotonic clocks are days ahead, in other time zones", do: func(r *rig) error { return r.sleep(3 * time.Second) }, shifted: true, post: wrongClock, rules: inOrder},
		{name: "workers-killed", what: "kill -9 of a worker every 700 ms, and a new one in its place; leases of 10 s", lease: 10 * time.Second, do: workersKilled},
		{name: "cli-flushall", what: "calls of `sluice acquire` around FLUSHALL: only the state directory remembers the grants", loses: true, whole: cliFlushed},
	}
}

// ahead is how far the monotonic clock of some workers runs ahead.
const ahead = 11 * 24 * time.Hour

// wrongClock gives each worker a different clock. The first worker has the right one.
func wrongClock(r *rig, worker int, p *post) error {
	if zone := []string{"", "Pacific/Kiritimati", "Pacific/Pago_Pago"}[worker%3]; zone != "" {
		p.env = append(p.env, "TZ="+zone)
	}
	if off := []time.Duration{0, 5 * time.Hour, -7 * time.Hour}[worker%3]; off != 0 {
		program, err := r.program()
		if err != nil {
			return err
		}
		p.program = program
		p.env, p.wall = append(p.env, fmt.Sprintf("%s=%d", wallShiftEnv, int(off.Seconds()))), off
	}
	if worker%2 == 0 {
		return nil
	}
	if wrap := timeNamespace(); wrap != nil {
		p.wrap, p.shift = wrap, ahead
	} else if worker == 1 {
		r.fleet.ledger.note("monotonic clocks were right: this system has no time namespaces, or does not let us")
	}
	return nil
}

// timeNamespace returns the command that starts a process with a monotonic clock that is ahead. It returns nil if this
// system has no time namespaces or does not permit them.
func timeNamespace() []string {
	seconds := fmt.Sprint(int(ahead.Seconds()))
	base := []string{"--time", "--monotonic", seconds, "--boottime", seconds}
	for _, more := range [][]string{nil, {"--map-root-user"}} {
		wrap := append(append([]string{"unshare"}, more...), base...)
		if exec.Command(wrap[0], append(wrap[1:], "true")...).Run() == nil {
			return wrap
		}
	}
	return nil
}

// workersKilled kills one worker after the other at random times, and starts a new one for each.
func workersKilled(r *rig) error {
	for range 6 {
		alive := r.fleet.alive()
		victim := alive[r.rand.IntN(len(alive))]
		victim.kill()
		w, err := r.fleet.start(victim.post)
		if err != nil {
			return err
		}
		if err := errors.Join(w.awaitReady(r.ctx), w.begin()); err != nil {
			return err
		}
		if err := r.sleep(time.Duration(600+r.rand.IntN(200)) * time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// self returns the path of this program.
func self() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find this program, to start it as a worker: %w", err)
	}
	return path, nil
}
