package pool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"unsafe"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/internal/policy"
)

// A state is a pool as bytes. It is the same on every machine, and a pool that is restored from it decides exactly as
// the original would: records keep their numbers, and free records the order in which they are used next. Indexes, the
// trees of the queue, counts of references, and what follows from the spec are not part of it.

// stateVersion is the first byte of a state. Raise it with every change of the bytes that an older release would
// misread: see TestStateLayout.
const stateVersion = 1

// mostMemory bounds the records that Restore makes. A state can ask for many with few bytes.
const mostMemory = 1 << 30

var (
	// ErrState means that bytes are not the state of a pool, or are damaged.
	ErrState = errors.New("this is not the state of a pool")
	// ErrVersion means that another release wrote a state, or that it has rules that this release does not know.
	ErrVersion = errors.New("the state of a pool is from another release")
)

var (
	oncePlan    = flat.PlanOf[once]("written")
	sumPlan     = flat.PlanOf[sum]()
	pastPlan    = flat.PlanOf[past]()
	ticketPlan  = flat.PlanOf[head]()
	chargePlan  = flat.PlanOf[charge]()
	instPlan    = flat.PlanOf[inst]()
	ringPlan    = flat.PlanOf[meter.Ring]()
	stockPlan   = flat.PlanOf[stock]()
	pacePlan    = flat.PlanOf[policy.Pace]()
	modelPlan   = flat.PlanOf[model]()
	leasePlan   = flat.PlanOf[lease]()
	memberPlan  = flat.PlanOf[member]()
	gatePlan    = flat.PlanOf[pauseRec]()
	sessionPlan = flat.PlanOf[session]()
	answersPlan = flat.PlanOf[answers]()
	callerPlan  = flat.PlanOf[caller]()
	periodPlan  = flat.PlanOf[period]()
)

// statePlans returns the plans of all records, in the order of a state.
func statePlans() []*flat.Plan {
	return append([]*flat.Plan{
		oncePlan, sumPlan, pastPlan, ticketPlan, chargePlan, instPlan, ringPlan, stockPlan, pacePlan, modelPlan, leasePlan,
		memberPlan, gatePlan, sessionPlan, answersPlan, callerPlan, periodPlan,
	}, order.Plans()...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendState appends the state of the pool, which Restore reads. Call it between steps. It changes nothing.
func (p *Pool) AppendState(b []byte) []byte {
	start := len(b)
	b = append(b, stateVersion)
	b = binary.AppendUvarint(b, uint64(p.rules))
	b = append(b, p.hashing.flag())
	b = binary.LittleEndian.AppendUint64(b, p.hash)
	b = binary.AppendVarint(b, p.now)
	spec := oplog.AppendSpec(nil, &p.spec)
	b = append(binary.AppendUvarint(b, uint64(len(spec))), spec...)
	w := stateWriter{b, p.now}
	writeOne(&w, oncePlan, p.once)
	writeOne(&w, sumPlan, p.callers.sum)
	writeOne(&w, pastPlan, p.history.past)
	w.b = p.names.AppendState(w.b)
	w.b = p.tickets.AppendState(w.b, func(b []byte, t *ticket) []byte {
		b = ticketPlan.Append(b, unsafe.Pointer(&t.head), p.now)
		for k := range t.n { // the others are left over from earlier tickets
			b = chargePlan.Append(b, unsafe.Pointer(&t.charges[k]), p.now)
		}
		return b
	})
	writeSlab(&w, instPlan, &p.insts)
	writeSlab(&w, ringPlan, &p.rings)
	writeSlab(&w, stockPlan, &p.stocks)
	writeSlab(&w, pacePlan, &p.paces)
	writeSlab(&w, modelPlan, &p.models)
	w.b = p.leases.AppendState(w.b, func(b []byte, l *lease) []byte {
		is := *l
		clear(is.waits[min(int(is.n), len(is.waits)):])
		return leasePlan.Append(b, unsafe.Pointer(&is), p.now)
	})
	writeSlab(&w, memberPlan, &p.members)
	writeSlab(&w, gatePlan, &p.gates)
	writeSlab(&w, sessionPlan, &p.sessions)
	writeSlab(&w, answersPlan, &p.answers)
	writeSlab(&w, callerPlan, &p.callers.recs)
	writeSlab(&w, periodPlan, &p.history.periods)
	w.b = p.queue.AppendState(w.b, p.now)
	return binary.LittleEndian.AppendUint32(w.b, crc32.Checksum(w.b[start:], castagnoli))
}

type stateWriter struct {
	b   []byte
	now int64
}

func writeOne[T any](w *stateWriter, plan *flat.Plan, rec *T) {
	w.b = plan.Append(w.b, unsafe.Pointer(rec), w.now)
}

func writeSlab[T any](w *stateWriter, plan *flat.Plan, slab *flat.Slab[T]) {
	now := w.now
	w.b = slab.AppendState(w.b, func(b []byte, rec *T) []byte { return plan.Append(b, unsafe.Pointer(rec), now) })
}

func readSlab[T any](r *flat.Reader, plan *flat.Plan, slab *flat.Slab[T]) {
	slab.ReadState(r, func(r *flat.Reader, rec *T) { plan.Read(r, unsafe.Pointer(rec)) })
}

// Restore returns the pool whose state AppendState wrote, on the heap. It checks everything: whatever the bytes are, it
// returns an error or a pool that works.
func Restore(b []byte) (*Pool, error) {
	if len(b) < 5 {
		return nil, ErrState
	}
	if b[0] != stateVersion {
		return nil, fmt.Errorf("%w: version %d, this one knows %d", ErrVersion, b[0], stateVersion)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrState)
	}
	r := flat.NewReader(body[1:], mostMemory)
	p := open(nil)
	rules := r.Uvarint()
	switch {
	case r.Bad():
		return nil, ErrState
	case rules < LeastRules || rules > Rules:
		return nil, fmt.Errorf("%w: it has rules %d, this one knows %d to %d", ErrVersion, rules, LeastRules, Rules)
	}
	p.rules = int(rules)
	flags := r.Byte()
	p.hashing = flags == 1
	if hash := r.Bytes(8); hash != nil {
		p.hash = binary.LittleEndian.Uint64(hash)
	}
	now := r.Varint()
	if flags > 1 || now < 0 || now >= meter.Never {
		return nil, ErrState
	}
	r.Near(now)
	spec, err := oplog.DecodeSpec(r.Bytes(r.Uvarint()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	p.readRecords(r)
	if r.Bad() || r.Len() > 0 || p.now != now {
		return nil, ErrState
	}
	p.spec = spec
	c := stateCheck{p: p}
	if err := c.pool(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return p, nil
}

func (p *Pool) readRecords(r *flat.Reader) {
	oncePlan.Read(r, unsafe.Pointer(p.once))
	sumPlan.Read(r, unsafe.Pointer(p.callers.sum))
	pastPlan.Read(r, unsafe.Pointer(p.history.past))
	p.names.ReadState(r)
	p.tickets.ReadState(r, func(r *flat.Reader, t *ticket) {
		ticketPlan.Read(r, unsafe.Pointer(&t.head))
		if int(t.n) > len(t.charges) {
			r.Fail()
			return
		}
		for k := range t.n {
			chargePlan.Read(r, unsafe.Pointer(&t.charges[k]))
		}
	})
	readSlab(r, instPlan, &p.insts)
	readSlab(r, ringPlan, &p.rings)
	readSlab(r, stockPlan, &p.stocks)
	readSlab(r, pacePlan, &p.paces)
	readSlab(r, modelPlan, &p.models)
	readSlab(r, leasePlan, &p.leases)
	readSlab(r, memberPlan, &p.members)
	readSlab(r, gatePlan, &p.gates)
	readSlab(r, sessionPlan, &p.sessions)
	readSlab(r, answersPlan, &p.answers)
	readSlab(r, callerPlan, &p.callers.recs)
	readSlab(r, periodPlan, &p.history.periods)
	p.queue.ReadState(r)
}

// Fork returns an independent copy of the pool on the heap. It decides exactly as the original would.
func (p *Pool) Fork() *Pool {
	c := open(nil)
	err := p.whole.ForkTo(c.whole)
	if err == nil {
		spec := p.spec
		spec.Limits, spec.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
		err = c.adopt(spec)
	}
	if err != nil {
		panic(fmt.Sprintf("pool: a pool that works cannot be copied: %v", err)) // both have the same parts and the same spec
	}
	c.takeParts()
	c.written = written{}
	c.replica = p.replica
	return c
}
