package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/deadletter"
)

// end returns the error with which the program ends after a result.
func (res *result) end() error {
	switch {
	case res.why != nil:
		return res.why
	case res.code != 0:
		return childExit(res.code)
	}
	return nil
}

// lettersIn opens the dead letters in a state directory.
func lettersIn(dir string) (*deadletter.List, error) {
	if dir == "" {
		return nil, &failure{
			code: exitUnavailable, message: "no directory for dead letters: this user has no state directory",
			hint: "set HOME or XDG_STATE_HOME, or use --store file:PATH",
		}
	}
	list, err := deadletter.Open(filepath.Join(dir, "dead-letters"))
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "dead letters: " + err.Error(), hint: "check permissions and free space there"}
	}
	return list, nil
}

// bury keeps a given-up job as a dead letter, and prints how to get it back.
func (r *runner) bury(res *result) {
	e := r.letter()
	e.Config, e.Store = deadletter.Text(r.config), deadletter.Text(r.s.store)
	r.became(&e, res)
	list, err := sealedIn(r.s.dir, r.s.file)
	var id string
	var dropped []string
	if err == nil {
		var dir string
		if dir, err = os.Getwd(); err == nil {
			e.Dir = deadletter.Text(dir)
			id, dropped, err = list.Add(e)
		}
	}
	if err != nil {
		res.why.detail = "error: it could not be kept as a dead letter: " + err.Error()
		if errors.Is(err, deadletter.ErrTooLarge) {
			res.why.hint = "give long input as a file"
		}
		return
	}
	res.why.hint = fmt.Sprintf("it is kept as dead letter %s: sluice dlq retry %s runs it again", id, id)
	r.saidDropped(dropped)
}

// saidDropped warns about entries that were dropped because the list was full.
func (r *runner) saidDropped(ids []string) {
	if len(ids) > 0 {
		fmt.Fprintf(r.stderr, "warning: the list of dead letters was full; dropped the oldest: %d, up to %s\n", len(ids), ids[len(ids)-1])
	}
}

// became adds the outcome of this round to the entry.
func (r *runner) became(e *deadletter.Entry, res *result) {
	e.Time = time.Now().UTC().Truncate(time.Millisecond)
	if e.Attempts == 0 {
		e.First = r.first
	}
	e.Attempts += r.sent
	e.Rounds++
	if r.sent > 0 {
		e.Last, e.ExitCode = r.last, r.code
	}
	e.Reason = res.gaveUp
	e.Waits = append(e.Waits, r.waits...)
}
