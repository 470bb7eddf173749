package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fault is one row of the campaign's table.
type fault struct {
	name    string
	what    string        // description in one sentence
	setup   int           // set-up of Redis
	via     int           // how workers reach Redis
	lines   []string      // additional lines of Redis's configuration
	params  string        // additional parameters of the store's URL
	mode    string        // on_store_failure of the workers; "": share
	lease   time.Duration // lease of the workers; 0: the default
	shifted bool          // some workers need a program with a wrong clock, which takes a while to build
	loses   bool          // Redis may lose its state, including its counters
	clock   bool          // Redis has a wall clock that can be set

	// do causes the fault and returns when it is over. It runs in the middle of the load.
	do func(r *rig) error
	// post changes how workers are started; nil: no change.
	post func(r *rig, worker int, p *post) error
	// rules checks the rules of this fault alone; may be nil.
	rules func(x *run)
	// whole replaces the usual run; may be nil.
	whole func(c *campaign, x *run, r *rig) error
}

// all returns all faults, in the order of the table.
func all() []*fault {
	return slices.Concat(netFaults(), replyFaults(), serverFaults(), clockFaults(), groupFaults(), clientFaults())
}

// choose returns the faults with these names, or all faults if names is empty.
func choose(names []string) ([]*fault, error) {
	known := all()
	if len(names) == 0 {
		return known, nil
	}
	var list []*fault
	for _, name := range names {
		i := slices.IndexFunc(known, func(f *fault) bool { return f.name == name })
		if i < 0 {
			var all []string
			for _, f := range known {
				all = append(all, f.name)
			}
			return nil, fmt.Errorf("there is no fault %q: known are %s", name, strings.Join(all, ", "))
		}
		list = append(list, known[i])
	}
	return list, nil
}

// every calls do at an interval, until the total time is over.
func (r *rig) every(interval, total time.Duration, do func() error) error {
	for end := time.Now().Add(total); time.Now().Before(end); {
		if err := do(); err != nil {
			return err
		}
		if err := r.sleep(interval); err != nil {
			return err
		}
	}
	return nil
}
