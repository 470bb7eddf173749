package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// snapshotVersion is the first byte of a snapshot. Raise it with every change that an older release would misread.
const snapshotVersion = 1

var (
	// ErrSnapshot means that bytes are not a snapshot, or are damaged.
	ErrSnapshot = errors.New("this is not the snapshot of a pool")
	// ErrVersion means that another release wrote a snapshot.
	ErrVersion = errors.New("the snapshot is from another release")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends the replica as bytes, which Restore reads. Replicas that have applied the same entries append the
// same bytes, on every machine.
func (r *Replica) AppendSnapshot(b []byte) []byte {
	start := len(b)
	b = append(b, snapshotVersion)
	b = binary.AppendUvarint(b, uint64(r.rules))
	b = binary.AppendUvarint(b, r.numbers)
	b = appendFixed(b, r.hash, 8)
	b = binary.AppendVarint(b, int64(r.awake))
	b = binary.AppendVarint(b, int64(r.forgot))
	b = r.clock.append(b)
	b = binary.AppendUvarint(b, uint64(len(r.departed)))
	for _, d := range r.departed {
		b = appendFixed(appendFixed(b, d.id, 8), uint64(d.seq), 2)
		b = binary.AppendVarint(b, int64(r.Now()-d.at))
	}
	texts := table{numbers: map[string]int{}}
	var list []byte
	for _, p := range r.processes {
		list = p.append(list, &texts, r.Now())
	}
	b = binary.AppendUvarint(b, uint64(len(texts.list)))
	for _, text := range texts.list {
		b = appendSized(b, text)
	}
	b = binary.AppendUvarint(b, uint64(len(r.processes)))
	b = append(b, list...)
	if r.pool != nil {
		b = r.pool.AppendState(b)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// table has each text of a snapshot once.
type table struct {
	list    []string
	numbers map[string]int
}

// of appends the number of a text.
func (t *table) of(b []byte, text string) []byte {
	n, ok := t.numbers[text]
	if !ok {
		n = len(t.list)
		t.list = append(t.list, text)
		t.numbers[text] = n
	}
	return binary.AppendUvarint(b, uint64(n))
}

func (p *process) append(b []byte, texts *table, now store.Time) []byte {
	b = binary.AppendUvarint(b, p.number)
	b = appendFixed(b, p.id, 8)
	b = appendFixed(b, p.machine, 8)
	b = binary.AppendUvarint(b, uint64(p.least))
	b = binary.AppendUvarint(b, uint64(p.most)<<1|uint64(bit(p.oneShot, 1)))
	b = appendFixed(b, uint64(p.seq), 2)
	b = binary.AppendUvarint(b, uint64(p.reading))
	b = binary.AppendVarint(b, int64(now-p.heard))
	b = texts.of(b, p.spec)
	b = binary.AppendUvarint(b, uint64(p.current))
	b = binary.AppendUvarint(b, uint64(p.shares))
	b = binary.AppendUvarint(b, p.names.added)
	b = binary.AppendUvarint(b, uint64(len(p.names.list)))
	for _, name := range p.names.list {
		b = texts.of(b, name)
	}
	b = binary.AppendUvarint(b, p.shapes.added)
	b = binary.AppendUvarint(b, uint64(len(p.shapes.list)))
	for _, s := range p.shapes.list {
		b = texts.of(b, s.code)
	}
	b = binary.AppendUvarint(b, uint64(len(p.sessions)))
	for _, s := range p.sessions {
		b = binary.AppendUvarint(b, uint64(s.number))
		b = binary.AppendUvarint(b, s.base)
		code := ""
		if s.states != nil {
			code = s.states.code
		}
		b = texts.of(b, code)
	}
	return b
}

func (c *clock) append(b []byte) []byte {
	for _, v := range []int64{c.now, c.stamp, c.line, c.front, c.frontAt, c.disputed, c.disputeAt, c.excess, c.owed, c.owedAt} {
		b = binary.AppendVarint(b, v)
	}
	b = appendFixed(b, c.frontBy, 8)
	b = binary.AppendUvarint(b, uint64(len(c.machines)))
	for i := range c.machines {
		m := &c.machines[i]
		b = appendFixed(b, m.id, 8)
		for _, v := range []int64{m.offset, m.at, m.at - m.grown, c.now - m.since, c.now - m.seen, m.count, m.behind.count, m.behind.from, m.behind.last, m.behind.by} {
			b = binary.AppendVarint(b, v)
		}
	}
	return b
}

// Restore returns the replica that AppendSnapshot wrote. It checks everything: whatever the bytes are, it returns an error
// or a replica that works. The error is [ErrSnapshot], [ErrVersion], or [ErrRules] if this release does not know the
// rules by which the pool decides.
func Restore(snapshot []byte) (*Replica, error) {
	if len(snapshot) < 5 {
		return nil, ErrSnapshot
	}
	if snapshot[0] != snapshotVersion {
		return nil, fmt.Errorf("%w: version %d, this one knows %d", ErrVersion, snapshot[0], snapshotVersion)
	}
	body := snapshot[:len(snapshot)-4]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(snapshot[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrSnapshot)
	}
	in := reader{b: body[1:]}
	r := New()
	r.setRules(int(in.most(maxRules)))
	r.numbers = in.most(1 << 60)
	r.hash = in.fixed(8)
	r.awake = store.Time(in.between(0, latestTime))
	r.forgot = store.Time(in.between(0, latestTime))
	r.clock.read(&in)
	for range in.count(maxDeparted, 11) {
		r.departed = append(r.departed, departed{in.process(), uint16(in.fixed(2)), r.before(&in)})
	}
	texts := make([]string, in.count(1<<26, 1))
	for i := range texts {
		texts[i] = string(in.sized(maxSpec))
	}
	for range in.count(store.MaxMembers, 20) {
		r.read(&in, texts)
	}
	if in.bad || r.awake > r.Now() || r.forgot > r.Now() || !r.clock.begun() && r.numbers > 0 {
		return nil, ErrSnapshot
	}
	if r.rules == 0 {
		r.broken = nil
	}
	if r.broken != nil {
		return nil, r.broken
	}
	if len(in.b) == 0 {
		return r, nil
	}
	if err := r.readPool(in.b); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Replica) readPool(state []byte) error {
	p, err := pool.Restore(state)
	if errors.Is(err, pool.ErrVersion) {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	if p.Rules() != r.rules || p.Now() > r.Now() {
		return ErrSnapshot
	}
	p.HashDecisions()
	r.pool = p
	return nil
}

// before reads a time of the past.
func (r *Replica) before(in *reader) store.Time {
	return r.Now() - store.Time(in.between(0, int64(r.Now())))
}

// between reads a number within bounds.
func (r *reader) between(least, most int64) int64 {
	v := r.varint()
	if v < least || v > most {
		r.fail()
		return least
	}
	return v
}

// count reads how many items follow, each of at least size bytes.
func (r *reader) count(most, size int) int {
	n := r.most(uint64(most))
	if n*uint64(size) > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

// process reads the id of a process.
func (r *reader) process() uint64 {
	id := r.fixed(8)
	if id == 0 || ProcessOf(id) != id {
		r.fail()
	}
	return id
}

// maxReading bounds the numbers of a clock.
const maxReading = maxMonotonic * 4

func (c *clock) read(in *reader) {
	c.now, c.stamp = in.between(0, latestTime), in.between(0, latestTime)
	for _, v := range []*int64{&c.line, &c.front, &c.frontAt, &c.disputed, &c.disputeAt, &c.excess, &c.owed, &c.owedAt} {
		*v = in.between(-maxReading, maxReading)
	}
	c.frontBy = in.fixed(8)
	c.machines = make([]machine, in.count(maxMachines, 16))
	for i := range c.machines {
		m := &c.machines[i]
		m.id = in.fixed(8)
		if m.id == 0 || i > 0 && m.id <= c.machines[i-1].id {
			in.fail()
		}
		m.offset = in.between(-maxReading, maxReading)
		m.at = in.between(0, maxReading)
		m.grown = m.at - in.between(0, m.at)
		m.since, m.seen = c.now-in.between(0, c.now), c.now-in.between(0, c.now)
		m.count = in.between(0, agreeing)
		m.behind = behind{in.between(0, maxReading), in.between(0, maxReading), in.between(0, latestTime), in.between(0, maxReading)}
	}
}

// read reads a process.
func (r *Replica) read(in *reader, texts []string) {
	text := func() string {
		n := in.uvarint()
		if n >= uint64(len(texts)) {
			in.fail()
			return ""
		}
		return texts[n]
	}
	last := uint64(0)
	if n := len(r.processes); n > 0 {
		last = r.processes[n-1].number
	}
	p := &process{number: in.most(r.numbers), id: in.process(), machine: in.fixed(8), byNumber: map[uint32]*session{}}
	if p.number <= last || r.process(p.id) != nil {
		in.fail()
	}
	p.least = int(in.most(maxRules))
	most := in.most(maxRules<<1 | 1)
	p.most, p.oneShot = int(most>>1), most&1 != 0
	p.seq = uint16(in.fixed(2))
	p.reading = int64(in.most(maxMonotonic))
	p.heard = r.before(in)
	if p.spec = text(); p.spec != "" {
		if _, err := oplog.DecodeSpec([]byte(p.spec)); err != nil {
			in.fail()
		}
	}
	p.current = uint32(in.most(MaxSession))
	p.shares = uint32(in.most(MaxSession))
	p.readBooks(in, text)
	r.add(p)
	for range in.count(maxSessions, 3) {
		s := &session{number: in.session(), base: in.uvarint()}
		if code := text(); code != "" {
			spec, err := oplog.DecodeSpec([]byte(code))
			if err != nil {
				in.fail()
			}
			s.states = r.intern(&statement{code, spec})
		}
		if p.byNumber[s.number] != nil {
			in.fail()
		}
		p.byNumber[s.number] = s
		p.sessions = append(p.sessions, s)
	}
}

func (p *process) readBooks(in *reader, text func() string) {
	added := in.uvarint()
	for range in.count(maxNames, 1) {
		name := text()
		p.names.list = append(p.names.list, name)
		p.names.size += len(name)
	}
	p.names.added = added
	added = in.uvarint()
	for range in.count(maxShapes, 1) {
		s := readShape([]byte(text()))
		if s == nil {
			in.fail()
			return
		}
		p.shapes.list = append(p.shapes.list, s)
		p.shapes.size += len(s.code)
	}
	p.shapes.added = added
	if p.names.size > maxNameBytes || p.shapes.size > maxShapeBytes {
		in.fail()
	}
}
