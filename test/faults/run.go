package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// campaign is a series of runs, one for each fault.
type campaign struct {
	self    string
	dir     string        // for temporary files
	load    time.Duration // duration of the load: a fifth before the fault, the rest after it
	workers int
	seed    uint64
	keep    string // directory for ledgers; "": none

	shifted func() (string, error) // builds this program with a wrong clock
	cli     func() (string, error) // builds the sluice command
}

// run is the result of one fault.
type run struct {
	Fault   string         `json:"fault"`
	What    string         `json:"what"`
	Grants  int            `json:"grants"`
	Use     float64        `json:"use"`              // fraction of what the rolling limit admits, over the whole load
	InFault *float64       `json:"in_fault"`         // the same during the fault; null: the fault was too short
	Errors  map[string]int `json:"errors"`           // by kind
	Late    millis         `json:"late_ms"`          // longest wait past a caller's own deadline
	Allowed millis         `json:"late_allowed_ms"`  // most that Late may be, including delays of the machine
	First   *millis        `json:"first_error_ms"`   // from the fault to the first store error
	Noticed *millis        `json:"noticed_ms"`       // from the fault to the first gate that reports it
	Gap     millis         `json:"longest_gap_ms"`   // longest time without a use, from the fault on
	Back    *millis        `json:"back_ms"`          // from the end of the fault to the full rate
	Rolling int            `json:"worst_window"`     // most uses in a window
	Strict  int            `json:"worst_strict"`     // the same for the pool with a strict guard
	Bucket  int            `json:"worst_bucket"`     // highest level
	Places  int            `json:"worst_places"`     // most tickets held at the same time
	Breaks  int            `json:"limit_violations"` // in all pools
	Double  int            `json:"double_grants"`    // tickets that were granted twice
	Twice   *int           `json:"charged_twice"`    // charges without a request; null: the store's counters were lost
	Renewed int            `json:"renewed"`          // tickets that were stale before their use
	Close   millis         `json:"longest_close_ms"` // longest time that closing a ticket took
	CPU     float64        `json:"worker_cpu_share"` // mean share of a processor that a worker used
	Fresh   millis         `json:"fresh_process_ms"` // longest wait of a fresh process after the run
	Broken  []string       `json:"broken"`           // broken rules, in words
	Notes   []string       `json:"notes,omitempty"`  // other remarks

	fault                    *fault
	ledger                   *ledger
	starved                  time.Duration // see starvation
	start, began, over, stop stamp
}

// millis is a time in milliseconds.
type millis float64

func ms(d time.Duration) millis { return millis(d.Seconds() * 1000) }

func some(m millis) *millis { return &m }

// broke records that a rule was broken.
func (x *run) broke(format string, args ...any) {
	x.Broken = append(x.Broken, fmt.Sprintf(format, args...))
}

const (
	// warmWithin is how much longer than planned the load may run before the fault, on a busy machine.
	warmWithin = time.Minute
	// backWithin is how much longer than planned the load may run until the full rate is back.
	backWithin = time.Minute
	// fullRate is the part of the limit that counts as the full rate.
	fullRate = 0.8
)

// do runs one fault. The error is about the campaign itself; the run, which is never nil, records what the store did
// wrong.
func (c *campaign) do(ctx context.Context, f *fault, number int) (*run, error) {
	x := &run{Fault: f.name, What: f.what, Errors: map[string]int{}, Broken: []string{}, fault: f, ledger: newLedger()}
	dir := filepath.Join(c.dir, f.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return x, err
	}
	fl := &fleet{dir: dir, self: c.self, ledger: x.ledger, seed: c.seed*1000 + uint64(number)*100}
	r, err := newRig(ctx, f, fl, c.seed+uint64(number))
	if err != nil {
		return x, err
	}
	r.program = c.shifted
	if f.whole != nil {
		err = f.whole(c, x, r)
	} else {
		err = c.underLoad(x, r)
	}
	err = errors.Join(err, r.stop())
	x.Notes = append(x.Notes, x.ledger.notes...)
	if c.keep != "" {
		err = errors.Join(err, c.keepLedger(x))
	}
	return x, err
}

// underLoad causes the fault in the middle of the load, and checks the results.
func (c *campaign) underLoad(x *run, r *rig) error {
	defer r.fleet.stop() // leaves no worker running
	posts := make([]post, c.workers)
	for i := range posts { // before any worker starts, because building one may take minutes
		posts[i] = r.post(i)
		if x.fault.post != nil {
			if err := x.fault.post(r, i, &posts[i]); err != nil {
				return err
			}
		}
	}
	for _, p := range posts {
		if _, err := r.fleet.start(p); err != nil {
			return err
		}
	}
	for _, w := range r.fleet.all() {
		if err := w.awaitReady(r.ctx); err != nil {
			return err
		}
	}
	watched, end := context.WithCancel(r.ctx)
	late, starved := make(chan time.Duration, 1), make(chan time.Duration, 1)
	go func() { late <- lateness(watched, time.Hour) }()
	go func() { starved <- starvation(watched, r.server) }()
	err := c.phases(x, r)
	end()
	x.ledger.lateness(<-late)
	x.starved = <-starved
	if err != nil {
		return err
	}
	x.stop = now()
	for _, err := range r.fleet.stop() {
		x.broke("%v", err)
	}
	x.figures(r.fleet)
	x.check(r.fleet)
	return x.aftermath(r)
}

// phases runs the load: before, during and after the fault.
func (c *campaign) phases(x *run, r *rig) error {
	x.start = now()
	for _, w := range r.fleet.all() {
		if err := w.begin(); err != nil {
			return err
		}
	}
	if err := r.sleep(c.load / 5); err != nil {
		return err
	}
	if err := r.until(warmWithin, x.warm); err != nil {
		return err
	}
	x.began = now()
	err := x.fault.do(r)
	x.over = now()
	if err != nil {
		return err
	}
	if err := r.sleep(c.load * 4 / 5); err != nil {
		return err
	}
	return r.until(backWithin, func() bool {
		_, ok := backAt(x.ledger.usesOf(rolling), x.over)
		return ok
	})
}

// warm reports whether every pool has granted something. A fault before that would show nothing.
func (x *run) warm() bool {
	for pool := range poolNames {
		if len(x.ledger.usesOf(pool)) == 0 {
			return false
		}
	}
	return true
}

// aftermath checks that nothing is stuck after the run.
func (x *run) aftermath(r *rig) error {
	found, err := r.fleet.probe(r.ctx, r.url(0))
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if err != nil {
		x.broke("%v%s", err, r.owners())
	}
	sent := int64(0)
	for _, f := range found {
		sent += f.Sent
		x.Fresh = max(x.Fresh, ms(f.Waited))
		switch {
		case f.InFlight > 0 || f.Waiting > 0:
			x.broke("pool %s: %d in flight and %d waiting, %v after the last process has ended", f.Pool, f.InFlight, f.Waiting, quietWithin)
		case !f.Granted:
			x.broke("pool %s: a fresh process got no ticket within %v: %s", f.Pool, probeWithin, f.Error)
		case f.Error != "":
			x.broke("pool %s: a fresh process: %s", f.Pool, f.Error)
		}
	}
	if err == nil && !x.fault.loses {
		x.checkCharges(sent, r.fleet)
	}
	keys, err := r.eternal()
	if err != nil {
		return fmt.Errorf("look at the keys: %w", err)
	}
	if len(keys) > 0 {
		x.broke("%d keys in Redis never expire, such as %s", len(keys), keys[0])
	}
	return nil
}

// keepLedger writes the records of a run to a file, for people who look into a failure.
func (c *campaign) keepLedger(x *run) error {
	if err := os.MkdirAll(c.keep, 0o700); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(c.keep, x.Fault+".ledger"))
	if err != nil {
		return err
	}
	fmt.Fprintf(file, "start %d began %d over %d stop %d\n", x.start, x.began, x.over, x.stop)
	for _, b := range x.Broken {
		fmt.Fprintln(file, "broken:", b)
	}
	x.ledger.write(file)
	return file.Close()
}
