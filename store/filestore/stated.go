//go:build linux || darwin || windows

package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// The size of a limit is the smallest that a living process states. Each process writes down what it states in a file of its
// own, and holds the lock of that file: the system gives it back when the process dies. The pool itself has only the smallest
// size, in the same form as ever. So versions that have no such file can share it; while one does, limits do not grow.

const (
	statedPrefix = "stated-"
	// statedHead begins such a file. Another one is another form, and nothing is known of what that process states.
	statedHead = "sluice stated 1\n"
	maxStated  = 64 << 10
	// settleEvery is how often a process looks whether it can have back what others made smaller.
	settleEvery = second
)

func statedPath(dir string, process uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%012x", statedPrefix, process))
}

// publish lets others know what this process states. If that fails they find a process of which they know nothing. The pool is
// locked.
func (st *state) publish(specs []store.Spec) {
	if len(specs) == 0 {
		st.withdraw()
		return
	}
	if st.card == nil {
		f, err := statedir.OpenNoLink(statedPath(st.dir, st.process), os.O_RDWR|os.O_CREATE)
		if err != nil {
			return
		}
		st.card = f
		if tryLock(descriptorOf(f)) != nil {
			st.withdraw()
			return
		}
	}
	all := pool.Merged(specs)
	text := oplog.AppendSpec([]byte(statedHead), &all)
	err := st.card.Truncate(0) // what it stated before counts no more
	if err == nil {
		_, err = st.card.WriteAt(text, 0)
	}
	if err != nil {
		st.withdraw()
	}
}

// withdraw takes back what this process states.
func (st *state) withdraw() {
	if st.card == nil {
		return
	}
	path := st.card.Name()
	_ = leave(st.card) // it is only locked
	_ = os.Remove(path)
	st.card = nil
}

// settleIfDue gives limits the size that they should have, once in a while: those who made them smaller may be gone. The pool is locked.
func (st *state) settleIfDue() {
	now := st.ready.now
	if now == 0 {
		now = st.now()
	}
	if now-st.settled < settleEvery {
		return
	}
	st.settled = now
	mine := st.said.Specs()
	if st.card == nil {
		st.publish(mine)
	}
	st.settle(now, mine)
}

// settle gives limits the smallest size that a living process states, if that is not what they have. What cannot be done is tried
// again later. The pool is locked.
func (st *state) settle(now store.Time, mine []store.Spec) {
	if _, due := st.core.Due(mine); !due {
		return
	}
	living, err := st.living(now, mine)
	if err != nil {
		return
	}
	spec, due := st.core.Due(living)
	if !due || st.step(now, nil) != nil { // time that has passed counts by the size that there was
		return
	}
	st.note(nil)
	for range store.MaxLimits {
		if err := st.define(now, &spec, true); err != nil {
			return
		}
		if spec, due = st.core.Due(living); !due {
			break
		}
	}
	if st.step(now, nil) == nil {
		st.note(nil)
		st.keepTime()
	}
}

// living returns what the processes state that share the pool now: this one, and the others. If something may be there of which
// nothing is known, limits may not become larger than they are. The pool is locked.
func (st *state) living(now store.Time, mine []store.Spec) ([]store.Spec, error) {
	alone, err := st.isAlone()
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(st.dir)
	if err != nil {
		return nil, err
	}
	living, sure, others := append([]store.Spec(nil), mine...), true, 0
	known := map[uint64]bool{st.process: true}
	for _, e := range list {
		text, ok := strings.CutPrefix(e.Name(), statedPrefix)
		process, err := strconv.ParseUint(text, 16, 48)
		if !ok || err != nil || process == st.process {
			continue
		}
		known[process] = true
		path := filepath.Join(st.dir, e.Name())
		spec, there, err := readStated(path)
		switch {
		case err != nil:
			sure = false
		case there:
			others++
			living = append(living, spec)
		case !st.core.Lives(now, func(session uint64) bool { return processOf(session) == process }):
			_ = os.Remove(path) // it is dead, and nothing is left of it
		}
	}
	stranger := func(session uint64) bool { return !known[processOf(session)] }
	if !alone && (!sure || others == 0 || st.core.Lives(now, stranger)) {
		living = append(living, st.core.Stated())
	}
	return living, nil
}

// readStated reads what another process states, and whether it is alive.
func readStated(path string) (spec store.Spec, there bool, err error) {
	f, err := statedir.OpenNoLink(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return spec, false, nil
	}
	if err != nil {
		return spec, false, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	switch err := tryLock(descriptorOf(f)); {
	case err == nil:
		unlock(descriptorOf(f))
		return spec, false, nil
	case !errors.Is(err, errTaken):
		return spec, false, err
	}
	buf := make([]byte, maxStated)
	n, _ := f.ReadAt(buf, 0) // up to its end
	text, ok := strings.CutPrefix(string(buf[:n]), statedHead)
	if !ok {
		return spec, true, errForeign
	}
	spec, err = oplog.DecodeSpec([]byte(text))
	return spec, true, err
}
