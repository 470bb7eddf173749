package replica

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// Writer makes the entries of one process. It is not safe for concurrent use.
type Writer struct {
	Alive bool // the entries are signs of life of the process as a member with a share

	id          Identity
	least, most int // rules

	seq     uint16        // of the latest entry
	number  uint64        // of the process when it was made
	checked time.Duration // when an entry last had a hash
	names   index
	shapes  index
	code    []byte // of a shape

	// As they will be after the entry.
	current uint32
	spec    string
}

// checkEvery is how often an entry has the hash of its writer's replica.
const checkEvery = time.Second

// NewWriter returns a writer that makes the process join with its first entry.
func NewWriter(id Identity) *Writer {
	return &Writer{id: id, least: pool.LeastRules, most: pool.Rules}
}

// Append appends to b the entry with which the process asks for requests; without any it only says that the process is
// alive and that time has passed. If the process is not a member in r, the entry makes it one. Then its sessions are not
// open either.
//
// r is the replica of the process after the process's previous entry was applied, or found to be lost for good. So there
// is one entry under way at a time, and until its outcome is known the same bytes may be appended to the log again: all
// replicas recognise the second one. monotonic is the current reading of the machine's monotonic clock. It does not go back.
//
// It returns [sharedlog.ErrTooBig] if the requests do not fit into an entry, or a spec has more limits or longer names than
// any pool takes.
func (w *Writer) Append(b []byte, r *Replica, monotonic time.Duration, requests []Request) ([]byte, error) {
	start := len(b)
	h := head{seq: w.seq + 1}
	reading := min(max(monotonic.Microseconds(), 0), maxMonotonic)
	p := r.process(w.id.Process)
	if p != nil {
		if h.number, h.seq, h.reading = p.number, p.seq+1, max(reading-p.reading, 0); w.Alive && p.shares != 0 {
			h.flags |= lives
		}
	} else {
		p = &process{id: w.id.Process}
		h.flags, h.reading = joins, reading
		h.member = memberHead{w.id.Process, w.id.Machine, w.least, w.most, w.id.OneShot}
		for _, d := range r.departed {
			if d.id == w.id.Process {
				h.seq = d.seq + 1
			}
		}
	}
	if r.latest.hash != 0 && monotonic >= w.checked+checkEvery {
		h.flags |= checks
		h.check = r.latest
		w.checked = monotonic
	}
	w.seq = h.seq
	w.learn(p)
	b = appendHead(b, &h)
	ops := 0
	for i := range requests {
		q := &requests[i]
		n := uint32(q.Session & MaxSession)
		switch q.Kind {
		case Open:
			var ok bool
			if b, ok = w.open(b, n, q.Spec); !ok {
				return b[:start], fmt.Errorf("%w: the spec of a pool", sharedlog.ErrTooBig)
			}
		case Close:
			b = binary.AppendUvarint(append(b, closeOne), uint64(n))
		case Leave:
			b = append(b, leaveAll)
		case Forget:
			b = append(b, forgetAll)
		case Ops:
			for k := range q.Ops {
				b = w.operation(b, p, q.Session, &q.Ops[k])
			}
			ops += len(q.Ops)
		}
		if len(b)-start > sharedlog.MaxEntry || ops > store.MaxBatch {
			return b[:start], sharedlog.ErrTooBig
		}
	}
	return b, nil
}

// Sequence returns the number of the latest entry that Append made.
func (w *Writer) Sequence() uint16 { return w.seq }

// learn makes the writer's books those of the process, in case that an entry was not carried out.
func (w *Writer) learn(p *process) {
	w.current, w.spec = p.current, p.spec
	if w.number != p.number {
		w.number, w.names, w.shapes = p.number, index{}, index{}
	}
	w.names.follow(p.names.added, len(p.names.list), func(i int) string { return p.names.list[i] }, w.names.addName)
	w.shapes.follow(p.shapes.added, len(p.shapes.list), func(i int) string { return p.shapes.list[i].code }, w.shapes.addShape)
}

// open appends the opening of a session. It reports false for a spec that no pool takes.
func (w *Writer) open(b []byte, number uint32, spec *store.Spec) ([]byte, bool) {
	code := string(oplog.AppendSpec(nil, spec))
	if code == "" || len(code) > maxSpec {
		return b, false
	}
	w.current = number
	if code == w.spec {
		return binary.AppendUvarint(append(b, openAlike), uint64(number)), true
	}
	w.spec = code
	return binary.AppendUvarint(appendSized(append(b, openWith), code), uint64(number)), true
}

// operation appends an operation of a session, or of the session that it names.
func (w *Writer) operation(b []byte, p *process, session uint64, op *store.Op) []byte {
	if op.ID.Session != 0 {
		session = op.ID.Session
	}
	foreign := ProcessOf(session) != w.id.Process
	if number := uint32(session & MaxSession); !foreign && number != w.current {
		b = binary.AppendUvarint(append(b, toSession), uint64(number))
		w.current = number
	}
	has := fieldsOf(op, foreign)
	w.code = appendShape(w.code[:0], op, has)
	if n, ok := w.shapes.numbers[string(w.code)]; ok {
		b = binary.AppendUvarint(b, n+firstShape)
	} else {
		b = appendSized(append(b, newShape), w.code)
		w.shapes.addShape(string(w.code))
	}
	if foreign {
		b = binary.AppendUvarint(b, session)
	}
	if has&hasN != 0 {
		n := op.ID.N
		if !foreign {
			n = p.base(w.current) - n
		}
		b = binary.AppendVarint(b, int64(n))
	}
	if has&hasAgent != 0 {
		b = w.name(b, op.Agent)
	}
	if has&hasUser != 0 {
		b = w.name(b, op.User)
	}
	for _, a := range amountsOf(op) {
		b = binary.AppendVarint(b, a.N)
	}
	observed := observedOf(op)
	for i := range observed {
		o := &observed[i]
		b = binary.AppendVarint(binary.AppendVarint(b, o.Size), o.Remaining)
		b = appendDuration(appendDuration(b, o.ResetIn), o.Slop)
		b = binary.AppendVarint(b, o.Whole)
	}
	return w.rare(b, p, op, has)
}

// rare appends the fields that few operations have.
func (w *Writer) rare(b []byte, p *process, op *store.Op, has uint32) []byte {
	if has&hasWait != 0 {
		b = appendDuration(b, op.Wait)
	}
	if has&hasTTL != 0 {
		b = appendDuration(b, op.TTL)
	}
	if has&hasAlive != 0 {
		b = appendDuration(b, op.Alive)
	}
	if has&hasRetryAfter != 0 {
		b = appendDuration(b, op.RetryAfter)
	}
	if has&hasShare != 0 {
		b = binary.AppendVarint(b, op.Share)
	}
	if has&hasUntil != 0 {
		b = binary.AppendVarint(b, int64(op.Until-p.heard))
	}
	if has&hasCause != 0 {
		b = appendText(b, op.Cause)
	}
	if has&hasWaitsFor != 0 {
		names := op.WaitsFor[:min(len(op.WaitsFor), maxWaits)]
		b = binary.AppendUvarint(b, uint64(len(names)))
		for _, name := range names {
			b = w.name(b, name)
		}
	}
	if has&hasAge != 0 { // rounded down, which is later
		b = binary.AppendUvarint(b, min(uint64(op.Age/ageUnit), maxAge))
	}
	return b
}

// name appends a name, or its number if the process has sent it before.
func (w *Writer) name(b []byte, name string) []byte {
	name = name[:min(len(name), maxText)]
	if n, ok := w.names.numbers[name]; ok {
		return binary.AppendUvarint(b, n+1)
	}
	w.names.addName(name)
	return appendSized(append(b, 0), name)
}
