package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A worker reports everything it does in lines. It writes each line at once, so a killed worker has reported all it did:
//
//	ready NOW                              the gate is open
//	use POOL ID ASKED WITHIN USED          a ticket was granted, and used at that time
//	renew ID                               the ticket had become stale
//	closing ID NOW                         Close is about to be called
//	closed ID NOW KIND                     Close has returned
//	miss POOL ASKED WITHIN GOT KIND TEXT   no ticket was granted
//	lost POOL NOW TEXT                     the gate reports that the store is unreachable
//	back POOL NOW                          the gate reports that the store is back
//	tick NOW LATE                          longest delay of a timer since the last tick
//	note TEXT                              anything else

// use is a request that was granted.
type use struct {
	worker    int // number of the worker
	pool      int
	id        string
	asked     stamp
	within    time.Duration // the caller's own deadline
	used      stamp         // when the caller had its ticket and would have sent its request
	closing   stamp         // 0: Close was not called
	closed    stamp
	closeKind string // kind of the error of Close; "-": none
}

// miss is a request that was not granted.
type miss struct {
	worker int
	pool   int
	asked  stamp
	within time.Duration
	got    stamp
	kind   string
	text   string
}

// outage is a gate's event that its store is lost, or back.
type outage struct {
	worker int
	pool   int
	at     stamp
	over   bool
	text   string
}

// ledger records what all workers of a run did.
type ledger struct {
	mu      sync.Mutex
	uses    []use
	open    map[string]int // indices of uses that are not closed, by ticket id
	misses  []miss
	outages []outage
	late    time.Duration // longest delay of a timer
	renewed int
	notes   []string
}

const (
	maxNotes = 100
	maxLine  = 64 << 10
)

func newLedger() *ledger { return &ledger{open: map[string]int{}} }

// read records the lines of a worker until it ends. It calls ready when the worker is ready.
func (l *ledger) read(worker int, in io.Reader, ready func(stamp)) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	told := false
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "ready ")
		if at := (&fields{rest: rest}).stamp(); ok && !told {
			told = true
			ready(at)
		} else if err := l.take(worker, lines.Text()); err != nil {
			l.note(fmt.Sprintf("worker %d: %v", worker, err))
		}
	}
	if err := lines.Err(); err != nil {
		l.note(fmt.Sprintf("worker %d: %v", worker, err))
	}
}

// take records one line. The last line of a killed worker may be incomplete, which is only noted as an error.
func (l *ledger) take(worker int, line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	f := &fields{rest: rest}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind {
	case "use":
		u := use{worker: worker, pool: f.pool(), id: f.word(), asked: f.stamp(), within: time.Duration(f.stamp()), used: f.stamp()}
		if !f.bad {
			l.open[u.id] = len(l.uses)
			l.uses = append(l.uses, u)
		}
	case "closing":
		if i, at := f.open(l), f.stamp(); !f.bad {
			l.uses[i].closing = at
		}
	case "closed":
		if i, at, why := f.open(l), f.stamp(), f.word(); !f.bad {
			l.uses[i].closed, l.uses[i].closeKind = at, why
			delete(l.open, l.uses[i].id)
		}
	case "miss":
		m := miss{worker: worker, pool: f.pool(), asked: f.stamp(), within: time.Duration(f.stamp()), got: f.stamp(), kind: f.word(), text: f.rest}
		if !f.bad {
			l.misses = append(l.misses, m)
		}
	case "lost", "back":
		o := outage{worker: worker, over: kind == "back", pool: f.pool(), at: f.stamp(), text: f.rest}
		if !f.bad {
			l.outages = append(l.outages, o)
		}
	case "tick":
		if _, late := f.stamp(), time.Duration(f.stamp()); !f.bad {
			l.late = max(l.late, late)
		}
	case "renew":
		l.renewed++
	case "note":
		l.addNote(fmt.Sprintf("worker %d: %s", worker, rest))
	default:
		f.bad = true
	}
	if f.bad {
		return fmt.Errorf("a line that makes no sense: %.80q", line)
	}
	return nil
}

// fields parses a line word by word.
type fields struct {
	rest string
	bad  bool
}

func (f *fields) word() string {
	word, rest, _ := strings.Cut(f.rest, " ")
	f.rest = rest
	f.bad = f.bad || word == ""
	return word
}

func (f *fields) stamp() stamp {
	n, err := strconv.ParseInt(f.word(), 10, 64)
	f.bad = f.bad || err != nil
	return stamp(n)
}

func (f *fields) pool() int {
	i := slices.Index(poolNames[:], f.word())
	f.bad = f.bad || i < 0
	return i
}

// open returns the index of the open use with this ticket id.
func (f *fields) open(l *ledger) int {
	i, known := l.open[f.word()]
	f.bad = f.bad || !known
	return i
}

func (l *ledger) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addNote(text)
}

func (l *ledger) addNote(text string) {
	if len(l.notes) < maxNotes {
		l.notes = append(l.notes, text)
	}
}

// lateness records the delay of a timer of this process.
func (l *ledger) lateness(d time.Duration) {
	l.mu.Lock()
	l.late = max(l.late, d)
	l.mu.Unlock()
}

// usesOf returns the uses of a pool, sorted by time.
func (l *ledger) usesOf(pool int) []use {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []use
	for _, u := range l.uses {
		if u.pool == pool {
			list = append(list, u)
		}
	}
	slices.SortFunc(list, func(a, b use) int { return cmp.Compare(a.used, b.used) })
	return list
}

// write prints all records, for people who look into a failure.
func (l *ledger) write(out io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.uses {
		fmt.Fprintf(out, "%d use %s %s asked %d used %d closing %d closed %d %s\n", u.worker, poolNames[u.pool], u.id, u.asked, u.used, u.closing, u.closed, u.closeKind)
	}
	for _, m := range l.misses {
		fmt.Fprintf(out, "%d miss %s asked %d within %v got %d %s %s\n", m.worker, poolNames[m.pool], m.asked, m.within, m.got, m.kind, m.text)
	}
	for _, o := range l.outages {
		fmt.Fprintf(out, "%d outage %s %d over %v %s\n", o.worker, poolNames[o.pool], o.at, o.over, o.text)
	}
	for _, n := range l.notes {
		fmt.Fprintln(out, n)
	}
}
