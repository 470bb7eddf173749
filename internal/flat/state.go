package flat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// A state is records as bytes that are the same on every machine: the values of their fields as varints, never their
// memory. Padding, free records and whatever else a record holds without meaning stay out.

// ErrState means that bytes are not a state.
var ErrState = errors.New("not a state")

// Plan says how records of one type are written and read. A record is its fields in order, with structs and arrays
// laid out flat, in groups of eight. A group begins with a bit for each field that is not zero, and the values of
// these follow. Groups of zeros are counted, and at the end of a record left out. So a field that a later version adds
// at the end of a record changes no bytes while it is zero.
type Plan struct {
	typ    reflect.Type
	groups func() []group // made when they are first needed, because most programs write no state
}

type group struct {
	wide   bool // eight int64 in a row, which are compared with zero at once
	n      uint8
	fields [8]place
}

type place struct {
	at   uintptr
	kind reflect.Kind
}

// PlanOf returns the plan of a record. The fields named in skip are left out, in nested structs too; reading leaves
// them zero.
func PlanOf[T any](skip ...string) *Plan {
	t := reflect.TypeFor[T]()
	return &Plan{t, sync.OnceValue(func() []group { return groupsOf(t, skip) })}
}

func groupsOf(t reflect.Type, skip []string) (groups []group) {
	var all []place
	var walk func(t reflect.Type, at uintptr)
	walk = func(t reflect.Type, at uintptr) {
		switch t.Kind() {
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); f.Name != "_" && !slices.Contains(skip, f.Name) {
					walk(f.Type, at+f.Offset)
				}
			}
		case reflect.Array:
			for i := range t.Len() {
				walk(t.Elem(), at+uintptr(i)*t.Elem().Size())
			}
		case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64,
			reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			all = append(all, place{at, t.Kind()})
		default:
			panic("flat: a record holds a " + t.String())
		}
	}
	walk(t, 0)
	for len(all) > 0 {
		var g group
		g.n = uint8(copy(g.fields[:], all))
		all = all[g.n:]
		g.wide = g.n == 8
		for k, f := range g.fields[:g.n] {
			g.wide = g.wide && f.kind == reflect.Int64 && f.at == g.fields[0].at+8*uintptr(k)
		}
		groups = append(groups, g)
	}
	return groups
}

// Describe returns the kinds of all fields. It is the same on every machine, and changes when the bytes of a state do.
func (p *Plan) Describe() string {
	s := p.typ.String()
	for _, g := range p.groups() {
		for _, f := range g.fields[:g.n] {
			s += " " + f.kind.String()
		}
	}
	return s
}

// Append appends the record at rec. Numbers near now, which most times are, take few bytes.
func (p *Plan) Append(b []byte, rec unsafe.Pointer, now int64) []byte {
	used := 0
	groups := p.groups()
	count := len(b)
	b = append(b, 0) // the number of groups, most often below 128
	for i := 0; i < len(groups); i++ {
		g := &groups[i]
		mask := g.mask(rec)
		if mask == 0 {
			continue
		}
		if zeros := i - used; zeros > 0 {
			b = binary.AppendUvarint(append(b, 0), uint64(zeros-1))
		}
		used = i + 1
		b = append(b, mask)
		for k := range g.n {
			if mask&(1<<k) != 0 {
				b = g.fields[k].append(b, rec, now)
			}
		}
	}
	if used < 0x80 {
		b[count] = uint8(used)
		return b
	}
	var long [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(long[:], uint64(used))
	return slices.Replace(b, count, count+1, long[:n]...)
}

func (g *group) mask(rec unsafe.Pointer) (mask uint8) {
	if g.wide {
		w := (*[8]int64)(unsafe.Add(rec, g.fields[0].at))
		if w[0]|w[1]|w[2]|w[3]|w[4]|w[5]|w[6]|w[7] == 0 {
			return 0
		}
	}
	for k := range g.n {
		if !g.fields[k].isZero(rec) {
			mask |= 1 << k
		}
	}
	return mask
}

func (f *place) isZero(rec unsafe.Pointer) bool {
	at := unsafe.Add(rec, f.at)
	switch f.kind {
	case reflect.Int64, reflect.Uint64:
		return *(*int64)(at) == 0
	case reflect.Int32, reflect.Uint32:
		return *(*int32)(at) == 0
	case reflect.Int:
		return *(*int)(at) == 0
	case reflect.Uint16:
		return *(*uint16)(at) == 0
	default:
		return *(*uint8)(at) == 0
	}
}

func (f *place) append(b []byte, rec unsafe.Pointer, now int64) []byte {
	at := unsafe.Add(rec, f.at)
	switch f.kind {
	case reflect.Int64:
		return AppendNumber(b, *(*int64)(at), now)
	case reflect.Int:
		return AppendNumber(b, int64(*(*int)(at)), now)
	case reflect.Uint64:
		return binary.AppendUvarint(b, *(*uint64)(at))
	case reflect.Int32:
		return binary.AppendVarint(b, int64(*(*int32)(at)))
	case reflect.Uint32:
		return binary.AppendUvarint(b, uint64(*(*uint32)(at)))
	case reflect.Uint16:
		return binary.AppendUvarint(b, uint64(*(*uint16)(at)))
	case reflect.Bool:
		return b
	default:
		return append(b, *(*uint8)(at))
	}
}

// never is the largest time, [meter.Never], which many records hold.
const never = 1 << 53

// The two lowest bits of a number say how it is written.
const (
	plainNumber = iota
	nearNumber  // the difference from now
	neverNumber
	rawNumber // eight bytes follow
)

// AppendNumber appends a number that may be a time.
func AppendNumber(b []byte, v, now int64) []byte {
	const most = 1 << 60
	d := v - now
	switch {
	case v == never:
		return append(b, neverNumber)
	case v >= most || v <= -most:
		return binary.LittleEndian.AppendUint64(append(b, rawNumber), uint64(v))
	case max(d, -d) < max(v, -v):
		return binary.AppendUvarint(b, zigzag(d)<<2|nearNumber)
	default:
		return binary.AppendUvarint(b, zigzag(v)<<2)
	}
}

func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Reader reads a state. After the first flaw it is Bad, and everything that it reads is zero.
type Reader struct {
	b      []byte
	bad    bool
	now    int64
	memory int64
}

// NewReader returns a reader of b that makes records of at most memory bytes.
func NewReader(b []byte, memory int64) *Reader { return &Reader{b: b, memory: memory} }

// Fail makes the reader bad.
func (r *Reader) Fail() { r.b, r.bad = nil, true }

// Bad reports whether something was not as it should be.
func (r *Reader) Bad() bool { return r.bad }

// Len returns the number of bytes left.
func (r *Reader) Len() int { return len(r.b) }

// Near sets the time that numbers are written relative to.
func (r *Reader) Near(now int64) { r.now = now }

// Byte reads a byte.
func (r *Reader) Byte() uint8 {
	if len(r.b) == 0 {
		r.Fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// Uvarint reads what binary.AppendUvarint wrote.
func (r *Reader) Uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// Varint reads what binary.AppendVarint wrote.
func (r *Reader) Varint() int64 {
	v := r.Uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// Link reads the number of a record.
func (r *Reader) Link() int32 {
	v := r.Varint()
	if v < 0 || v > math.MaxInt32 {
		r.Fail()
		return 0
	}
	return int32(v)
}

// Number reads what AppendNumber wrote.
func (r *Reader) Number() int64 {
	u := r.Uvarint()
	v := int64(u>>3) ^ -int64(u>>2&1)
	switch u & 3 {
	case plainNumber:
		return v
	case nearNumber:
		return r.now + v
	case neverNumber:
		return never
	}
	if len(r.b) < 8 {
		r.Fail()
		return 0
	}
	v = int64(binary.LittleEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

// Bytes reads n bytes without copying them.
func (r *Reader) Bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.Fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// Read reads a record into rec, which is zero.
func (p *Plan) Read(r *Reader, rec unsafe.Pointer) {
	end := r.Uvarint()
	groups := p.groups()
	if end > uint64(len(groups)) {
		r.Fail()
		return
	}
	for i := uint64(0); i < end; i++ {
		mask := r.Byte()
		if mask == 0 {
			zeros := r.Uvarint()
			if zeros >= end-i-1 { // a group that is not zero must follow
				r.Fail()
				return
			}
			i += zeros
			continue
		}
		g := &groups[i]
		if mask>>g.n != 0 {
			r.Fail()
			return
		}
		for k := range g.n {
			if mask&(1<<k) != 0 && !g.fields[k].read(r, rec) {
				r.Fail()
				return
			}
		}
	}
}

func (f *place) read(r *Reader, rec unsafe.Pointer) bool {
	at := unsafe.Add(rec, f.at)
	switch f.kind {
	case reflect.Int64:
		*(*int64)(at) = r.Number()
	case reflect.Int:
		v := r.Number()
		*(*int)(at) = int(v)
		return int64(int(v)) == v
	case reflect.Uint64:
		*(*uint64)(at) = r.Uvarint()
	case reflect.Int32:
		v := r.Varint()
		*(*int32)(at) = int32(v)
		return int64(int32(v)) == v
	case reflect.Uint32:
		v := r.Uvarint()
		*(*uint32)(at) = uint32(v)
		return v <= math.MaxUint32
	case reflect.Uint16:
		v := r.Uvarint()
		*(*uint16)(at) = uint16(v)
		return v <= math.MaxUint16
	case reflect.Bool:
		*(*bool)(at) = true
	default:
		*(*uint8)(at) = r.Byte()
	}
	return !r.bad
}

// AppendState appends the free list and, with f, every record in use.
func (s *Slab[T]) AppendState(b []byte, f func(b []byte, rec *T) []byte) []byte {
	b, free := s.appendFree(b)
	for i := int32(1); i < s.End(); i++ {
		if !free[i] {
			b = f(b, s.At(i))
		}
	}
	return b
}

// appendFree appends the number of records and the free list, in order, because it decides which records are used next.
func (s *Slab[T]) appendFree(b []byte) ([]byte, []bool) {
	end := s.End()
	b = binary.AppendUvarint(b, uint64(end))
	if end == 0 {
		return b, nil
	}
	free := make([]bool, end)
	b = binary.AppendUvarint(b, uint64(s.head.idle))
	before := int32(0)
	for i := s.head.free; i != 0; i = *s.link(i) {
		free[i] = true
		b = binary.AppendVarint(b, int64(i-before))
		before = i
	}
	return b, free
}

// ReadState fills an empty slab on the heap with what AppendState wrote. f reads a record, which is zero.
func (s *Slab[T]) ReadState(r *Reader, f func(r *Reader, rec *T)) {
	free := s.readFree(r)
	for i := int32(1); i < s.End() && !r.bad; i++ {
		if !free[i] {
			f(r, s.At(i))
		}
	}
}

func (s *Slab[T]) readFree(r *Reader) []bool {
	end := r.Uvarint()
	if end == 0 || r.bad {
		return nil
	}
	// Each record takes a byte at least, in the free list or by itself.
	if end > uint64(r.Len()) || end > math.MaxInt32 {
		r.Fail()
		return nil
	}
	size := int64(unsafe.Sizeof([chunkLen]T{}))
	if r.memory -= (int64(end)/chunkLen + 1) * size; r.memory < 0 {
		r.Fail()
		return nil
	}
	idle := r.Uvarint()
	if idle >= end {
		r.Fail()
		return nil
	}
	s.setHead(int32(end), int32(idle))
	free := make([]bool, end)
	before, link := int64(0), &s.head.free
	for range idle {
		i := before + r.Varint()
		if i <= 0 || i >= int64(end) || free[i] || r.bad {
			s.head.free, s.head.idle, s.head.used = 0, 0, 0
			r.Fail()
			return nil
		}
		free[i] = true
		*link = int32(i)
		link = s.link(int32(i))
		before = i
	}
	return free
}

// Live returns which records are in use. Record 0 never is.
func (s *Slab[T]) Live() Live {
	live := make(Live, s.End())
	for i := range live {
		live[i] = i > 0
	}
	if s.head == nil {
		return live
	}
	for i := s.head.free; i != 0; i = *s.link(i) {
		live[i] = false
	}
	return live
}

// Live tells which records of a slab are in use.
type Live []bool

// Has reports whether record i is in use.
func (l Live) Has(i int32) bool { return i > 0 && int(i) < len(l) && l[i] }

// Count returns the number of records in use.
func (l Live) Count() (n int) {
	for _, live := range l {
		if live {
			n++
		}
	}
	return n
}

// AppendState appends all names with their numbers. References and tags are left out, because they follow from the
// records that have the names.
func (n *Names) AppendState(b []byte) []byte {
	b, _ = n.recs.appendFree(b)
	last := int32(0)
	b = binary.AppendUvarint(b, uint64(n.Len()))
	for i := int32(1); i < n.recs.End(); i++ {
		r := n.recs.At(i)
		if r.refs <= 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(i-last))
		last = i
		size := 0
		for k := i; k != 0; k = n.recs.At(k).next {
			size += int(n.recs.At(k).size)
		}
		b = binary.AppendUvarint(b, uint64(size))
		for k := i; k != 0; k = n.recs.At(k).next {
			r := n.recs.At(k)
			b = append(b, r.text[:r.size]...)
			if r.next != 0 {
				b = binary.AppendVarint(b, int64(r.next-k))
			}
		}
	}
	return b
}

// ReadState fills empty names on the heap. No name has a reference yet: the caller adds each with Keep.
func (n *Names) ReadState(r *Reader) {
	free := n.recs.readFree(r)
	left := len(free) - 1
	for _, f := range free {
		if f {
			left--
		}
	}
	taken := make([]bool, len(free))
	take := func(i int64) bool {
		if i <= 0 || i >= int64(len(free)) || free[i] || taken[i] || r.bad {
			r.Fail()
			return false
		}
		taken[i] = true
		left--
		return true
	}
	i := int64(0)
	for k := r.Uvarint(); k > 0 && !r.bad; k-- {
		gap := r.Uvarint()
		if gap == 0 || gap > uint64(len(free)) {
			r.Fail()
			return
		}
		if i += int64(gap); !take(i) {
			return
		}
		head := n.recs.At(int32(i))
		size := r.Uvarint()
		if size == 0 || size > uint64(r.Len()) {
			r.Fail()
			return
		}
		for at := i; ; {
			rec := n.recs.At(int32(at))
			part := min(size, uint64(len(rec.text)))
			rec.size = uint16(copy(rec.text[:], r.Bytes(part)))
			if size -= part; size == 0 {
				break
			}
			if at += r.Varint(); !take(at) {
				return
			}
			rec.next = int32(at)
		}
		text := n.Text(int32(i))
		if found, h := n.find(text); found != 0 {
			r.Fail()
			return
		} else {
			head.hash = h
			n.index.Add(h, int32(i))
		}
	}
	if left > 0 {
		r.Fail()
	}
}

// Has reports whether i is the number of a name.
func (n *Names) Has(i int32) bool {
	if i <= 0 || i >= n.recs.End() {
		return false
	}
	r := n.recs.At(i)
	h := r.hash
	for k, p := n.index.Seek(h, 0); k != 0; k, p = n.index.Seek(h, p) {
		if k == i {
			return true
		}
	}
	return false
}

// Unheld reports whether some name has no reference.
func (n *Names) Unheld() bool {
	held := 0
	for i := int32(1); i < n.recs.End(); i++ {
		if n.recs.At(i).refs > 0 {
			held++
		}
	}
	return held != n.Len()
}

// ForkTo makes d, whose parts were opened in the same order on the heap, an exact copy: records keep their numbers, and
// free ones their order. Blocks of [Space.Keep] are not copied.
func (s *Space) ForkTo(d *Space) error {
	if len(s.views) != len(d.views) || !d.onHeap() {
		return ErrLayout
	}
	for i, v := range s.views {
		if err := v.forkTo(d.views[i]); err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
	}
	return nil
}

func (s *Slab[T]) forkTo(to view) error {
	d, ok := to.(*Slab[T])
	if !ok {
		return ErrLayout
	}
	*d.head = slabHead{used: s.head.used, free: s.head.free, idle: s.head.idle}
	d.chunks = make([]*[chunkLen]T, len(s.chunks))
	all := make([][chunkLen]T, len(s.chunks))
	for i, c := range s.chunks {
		all[i] = *c
		d.chunks[i] = &all[i]
	}
	return nil
}

func (x *Index) forkTo(to view) error {
	d, ok := to.(*Index)
	if !ok {
		return ErrLayout
	}
	*d.head = indexHead{n: x.head.n}
	d.slots = slices.Clone(x.slots)
	return nil
}

func (n *Names) forkTo(to view) error {
	if _, ok := to.(*Names); !ok {
		return ErrLayout
	}
	return nil // the slab and the index are parts of their own, and the last name only makes finding it faster
}

func (s single[T]) forkTo(to view) error {
	d, ok := to.(single[T])
	if !ok {
		return ErrLayout
	}
	*d.rec = *s.rec
	return nil
}

// Chain returns the hash of a list of numbers, of which h is the hash of those before x.
func Chain(h, x uint64) uint64 { return mix(h ^ x ^ 0x9e3779b97f4a7c15) }
