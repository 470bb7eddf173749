package replica

import (
	"encoding/binary"
	"time"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
)

// An entry is a head and then requests. The first byte has the version of the format and flags.
const (
	entryVersion = 1 << 4
	versionBits  = 0xf0

	joins  uint8 = 1 << 0 // the process is not a member yet and says who it is
	checks uint8 = 1 << 1 // it has the hash of the writer's replica at some position
	lives  uint8 = 1 << 2 // it is a sign of life of a member with a share

	entryFlags = joins | checks | lives
)

// The requests of an entry, in order, begin with one of these numbers. Larger ones are operations: the number of the
// shape follows from it.
const (
	newShape   = iota // an operation of a shape that follows
	toSession         // what follows concerns another session of the process, by number
	openWith          // open a session, by number, with a spec
	openAlike         // open a session, by number, with the spec that the process opened one with before
	closeOne          // close a session, by number
	leaveAll          // the process leaves
	forgetAll         // an earlier log was lost
	firstShape = 8
)

// maxSpec is the largest size of a spec in bytes.
const maxSpec = 64 << 10

// head is what the beginning of an entry says.
type head struct {
	flags  uint8
	number uint64 // of the member; of those that do not join
	member memberHead
	seq    uint16
	// reading is of the machine's monotonic clock, in microseconds: since the process's previous entry, or all if it joins.
	reading int64
	check   check
}

// memberHead is what a process says of itself when it joins.
type memberHead struct {
	process, machine uint64
	least, most      int // rules
	oneShot          bool
}

const (
	// maxMonotonic bounds the reading of a monotonic clock, in microseconds.
	maxMonotonic = 1 << 53
	maxRules     = 1 << 16
	// checkBits is the size of a hash in an entry, and of the offset of its position.
	checkBits = 24
	checkMask = 1<<checkBits - 1
)

func appendHead(b []byte, h *head) []byte {
	b = append(b, entryVersion|h.flags)
	if h.flags&joins != 0 {
		m := &h.member
		b = appendFixed(b, m.process>>sessionBits, 8-sessionBits/8)
		b = appendFixed(b, m.machine, 8)
		b = binary.AppendUvarint(b, uint64(m.least))
		b = binary.AppendUvarint(b, uint64(m.most)<<1|uint64(bit(m.oneShot, 1)))
	} else {
		b = binary.AppendUvarint(b, h.number)
	}
	b = appendFixed(b, uint64(h.seq), 2)
	b = binary.AppendUvarint(b, uint64(h.reading))
	if h.flags&checks != 0 {
		b = appendFixed(b, uint64(h.check.at), checkBits/8)
		b = appendFixed(b, uint64(h.check.hash), checkBits/8)
	}
	return b
}

func (r *reader) head() (h head) {
	first := r.byte()
	h.flags = first &^ versionBits
	if first&versionBits != entryVersion || h.flags&^entryFlags != 0 {
		r.fail()
		return head{}
	}
	if h.flags&joins != 0 {
		m := &h.member
		m.process = r.fixed(8-sessionBits/8) << sessionBits
		m.machine = r.fixed(8)
		m.least = int(r.most(maxRules))
		most := r.most(maxRules<<1 | 1)
		m.most, m.oneShot = int(most>>1), most&1 != 0
		if m.process == 0 || m.least > m.most {
			r.fail()
		}
	} else {
		h.number = r.uvarint()
	}
	h.seq = uint16(r.fixed(2))
	h.reading = int64(r.most(maxMonotonic))
	if h.flags&checks != 0 {
		h.check = check{uint32(r.fixed(checkBits / 8)), uint32(r.fixed(checkBits/8)) | 1<<checkBits}
	}
	return h
}

// request is a decoded part of an entry.
type request struct {
	kind     Kind
	session  uint32
	from, to int // of the operations of the entry
	spec     *store.Spec
	code     string // of spec
}

// decoder decodes the requests of an entry. What it decodes is valid until the next one.
type decoder struct {
	requests []request
	ops      []store.Op
	amounts  []store.Amount
	observed []store.Observed
	waits    []string
	base     uint64 // of the process's current session
}

// enter makes a session the one that what follows concerns.
func (d *decoder) enter(p *process, number uint32) {
	p.current, d.base = number, p.base(number)
}

// requestsOf decodes the rest of an entry of process p. It changes p's books, its latest spec and its current session, and
// nothing if it returns false.
func (d *decoder) requestsOf(r *reader, p *process) bool {
	names, shapes, spec, current := p.names, p.shapes, p.spec, p.current
	d.requests, d.ops = d.requests[:0], d.ops[:0]
	d.amounts, d.observed, d.waits = d.amounts[:0], d.observed[:0], d.waits[:0]
	d.enter(p, current)
	left := false
	for len(r.b) > 0 && !left {
		switch code := r.uvarint(); code {
		case toSession:
			d.enter(p, uint32(r.most(MaxSession)))
		case openWith:
			d.open(r, p, string(r.sized(maxSpec)))
		case openAlike:
			if p.spec == "" {
				r.fail()
			}
			d.open(r, p, p.spec)
		case closeOne:
			d.requests = append(d.requests, request{kind: Close, session: r.session()})
		case leaveAll:
			d.requests = append(d.requests, request{kind: Leave})
			left = true
		case forgetAll:
			d.requests = append(d.requests, request{kind: Forget})
		default:
			d.operation(r, p, code)
		}
	}
	if r.bad || len(r.b) > 0 {
		p.names, p.shapes, p.spec = names, shapes, spec
		p.current = current
		return false
	}
	return true
}

// session reads the number of a session that a process opens or closes.
func (r *reader) session() uint32 {
	n := uint32(r.most(MaxSession))
	if n == 0 {
		r.fail()
	}
	return n
}

func (d *decoder) open(r *reader, p *process, code string) {
	n := r.session()
	spec, err := oplog.DecodeSpec([]byte(code))
	if err != nil {
		r.fail()
		return
	}
	p.spec = code
	d.enter(p, n)
	d.requests = append(d.requests, request{kind: Open, session: n, spec: &spec, code: code})
}

// operation decodes an operation. Consecutive ones become one request.
func (d *decoder) operation(r *reader, p *process, code uint64) {
	var s *shape
	switch {
	case code == newShape:
		if s = readShape(r.sized(maxShape)); s != nil {
			addShape(&p.shapes, s, len(s.code))
		}
	case code >= firstShape && code-firstShape < uint64(len(p.shapes.list)):
		s = p.shapes.list[code-firstShape]
	}
	if s == nil || len(d.ops) == store.MaxBatch {
		r.fail()
		return
	}
	at := len(d.ops)
	if n := len(d.requests); n > 0 && d.requests[n-1].kind == Ops {
		d.requests[n-1].to++
	} else {
		d.requests = append(d.requests, request{from: at, to: at + 1})
	}
	d.ops = append(d.ops, s.op)
	d.fill(r, p, s.has, &d.ops[at])
}

// fill reads the fields of an operation that are not part of its shape.
func (d *decoder) fill(r *reader, p *process, has uint32, op *store.Op) {
	op.ID.Session = p.id | uint64(p.current)
	foreign := has&hasSession != 0
	if foreign {
		op.ID.Session = r.uvarint()
	}
	if has&hasN != 0 {
		op.ID.N = uint64(r.varint())
		if !foreign {
			op.ID.N = d.base - op.ID.N
		}
	}
	if has&hasAgent != 0 {
		op.Agent = r.name(p)
	}
	if has&hasUser != 0 {
		op.User = r.name(p)
	}
	if has&hasAmounts != 0 {
		from := len(d.amounts)
		d.amounts = append(d.amounts, op.Amounts...)
		op.Amounts = d.amounts[from:len(d.amounts):len(d.amounts)]
		for i := range op.Amounts {
			op.Amounts[i].N = r.varint()
		}
	}
	if has&hasObserved != 0 {
		from := len(d.observed)
		d.observed = append(d.observed, op.Observed...)
		op.Observed = d.observed[from:len(d.observed):len(d.observed)]
		for i := range op.Observed {
			o := &op.Observed[i]
			o.Size, o.Remaining, o.ResetIn, o.Slop, o.Whole = r.varint(), r.varint(), r.duration(), r.duration(), r.varint()
		}
	}
	if has&(hasWait|hasTTL|hasAlive|hasRetryAfter|hasShare|hasUntil|hasCause|hasWaitsFor|hasAge) != 0 {
		d.fillRare(r, p, has, op)
	}
}

func (d *decoder) fillRare(r *reader, p *process, has uint32, op *store.Op) {
	for _, f := range []struct {
		bit uint32
		d   *time.Duration
	}{{hasWait, &op.Wait}, {hasTTL, &op.TTL}, {hasAlive, &op.Alive}, {hasRetryAfter, &op.RetryAfter}} {
		if has&f.bit != 0 {
			*f.d = r.duration()
		}
	}
	if has&hasShare != 0 {
		op.Share = r.varint()
	}
	if has&hasUntil != 0 {
		op.Until = p.heard + store.Time(r.varint())
	}
	if has&hasCause != 0 {
		op.Cause = string(r.sized(maxText))
	}
	if has&hasWaitsFor != 0 {
		from := len(d.waits)
		for range r.most(maxWaits) {
			d.waits = append(d.waits, r.name(p))
		}
		op.WaitsFor = d.waits[from:len(d.waits):len(d.waits)]
	}
	if has&hasAge != 0 {
		op.Age = time.Duration(r.most(maxAge)) * ageUnit
	}
}

// name reads a name, or the number of one that the process has sent before.
func (r *reader) name(p *process) string {
	n := r.uvarint()
	if n == 0 {
		name := string(r.sized(maxText))
		if !r.bad {
			addName(&p.names, name)
		}
		return name
	}
	if n > uint64(len(p.names.list)) {
		r.fail()
		return ""
	}
	return p.names.list[n-1]
}
