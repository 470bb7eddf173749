package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fault is one row of the campaign.
type fault struct {
	name    string
	what    string        // in one sentence
	setup   int           // of Redis
	via     int           // which way workers reach it
	lines   []string      // of its configuration
	params  string        // of the URL
	mode    string        // what workers do without the store; "": share
	lease   time.Duration // of workers; 0: the usual
	shifted bool          // some workers are a program that has to be built first
	loses   bool          // the store's memory may be lost, and its counters with it

	// do does it, and returns when it is over. It runs in the middle of the load.
	do func(r *rig) error
	// post changes how workers are started; nil: as usual.
	post func(r *rig, worker int, p *post) error
	// rules are those of this fault alone.
	rules func(x *run)
	// whole runs instead of everything else.
	whole func(c *campaign, x *run, r *rig) error
}

// all are the faults, in the order of the table.
func all() []*fault {
	return slices.Concat(netFaults(), replyFaults(), serverFaults(), groupFaults(), clientFaults())
}

// choose returns the faults of those names, all if there is none.
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

// every does something again and again for a time.
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
