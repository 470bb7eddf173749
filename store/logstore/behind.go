package logstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// A process whose connection is too slow for the log falls behind. It waits its turn, and holds nobody up:
//
//   - While entries arrive, the log is in reach, however long that takes. A process that does not come to the end within
//     followWithin does what it does in an outage (outage.go), until it has.
//   - If others wait for it to append an entry that lets time pass, they soon no longer do.
//   - If it cannot write a snapshot in time, it leaves that to others for a while.

const (
	// followWithin is how long a process may take to read to the end of the log, in a multiple of the patience.
	followWithin = 2
	// lateFor is how long others do not rely on a process that did not append an entry when its time had come.
	lateFor = 10 * time.Second
	// restFor is how long a process leaves snapshots to others if it could not write one.
	restFor = time.Minute
)

// errBehind reports that the log grows faster than this process can read it.
var errBehind = errors.New("this process cannot keep up with the log")

// follows tells how an exchange gets on with a log that others write to meanwhile.
type follows struct {
	began time.Duration // the exchange
	heard time.Duration // the latest entries arrived, or the exchange began
	at    sharedlog.Position
	bytes int64 // that arrived
}

func (st *state) follow() follows {
	up := st.store.clock.Uptime()
	return follows{began: up, heard: up, at: st.at}
}

// goesOn decides whether an exchange is attempted once more. err is its error if the log did not answer in time, and nil if it
// had changed. As long as entries arrive the log is in reach, but not forever.
func (f *follows) goesOn(st *state, err error) error {
	up := st.store.clock.Uptime()
	if n := st.at.Offset - f.at.Offset; n > 0 && st.at.Incarnation == f.at.Incarnation {
		f.heard = up
		f.bytes += n
	}
	if st.at.Incarnation != f.at.Incarnation { // it was healed meanwhile
		*f = st.follow()
	}
	f.at = st.at
	switch took := up - f.began; {
	case f.bytes > 0 && took >= followWithin*st.patience():
		return fmt.Errorf("%w: in %v it came %d kB on", errBehind, took.Round(time.Second), f.bytes/1000)
	case err != nil && up-f.heard >= st.patience():
		return err
	}
	return nil
}

// keepsUp returns an error if reading to the end of the log took so long that it is about to fall behind again.
func (f *follows) keepsUp(st *state) error {
	if took := st.store.clock.Uptime() - f.began; took > st.patience()/2 {
		return fmt.Errorf("%w: reading to its end took %v", errBehind, took.Round(100*time.Millisecond))
	}
	return nil
}

// noteBehind notes once in an outage that this process is behind. The caller holds st.mu.
func (st *state) noteBehind(err error) {
	if o := st.out; o != nil && !o.behind && errors.Is(err, errBehind) {
		o.behind = true
		st.note(store.Notice{Kind: store.NoticeBehind, Why: err.Error()})
	}
}

// noteLate notes that a process did not append an entry when its time had come: due is when that was. All replicas see the
// same. The caller holds st.mu.
func (st *state) noteLate(due store.Time, keeper uint64) {
	now := st.rep.Now()
	if due == 0 || keeper == 0 || now < due.Add(grace) {
		return
	}
	for process, until := range st.late {
		if until <= now {
			delete(st.late, process)
		}
	}
	st.late[keeper] = now.Add(lateFor)
}

// relied returns the process that the others wait for instead of keeper, if that was late recently: the first that was not,
// of those that have waiting requests. The caller holds st.mu.
func (st *state) relied(keeper uint64) uint64 {
	now := st.rep.Now()
	if st.late[keeper] <= now {
		return keeper
	}
	other := keeper
	st.rep.Pool().EachWaiting(func(session uint64) bool {
		process := replica.ProcessOf(session)
		if st.late[process] > now {
			return true
		}
		other = process
		return false
	})
	return other
}
