// Package flat keeps state as fixed-size records that refer to each other by number instead of by pointer. It has
// slabs of records, a hash index over them, an ordered tree, and interned names. The same layout works on the heap
// and in a mapped file. It costs the garbage collector nothing, and a million records are a few large blocks.
//
// Record number 0 is never handed out, so a zero link means none.
package flat

import (
	"reflect"
	"unsafe"
)

// chunkLen is how many records a slab grows by. It is a constant, so that finding a record takes two loads and a
// mask. It is small, because some records are large and most pools are small.
const chunkLen = 16

// Slab is a growing array of records with a free list. The zero Slab is ready for use, on the heap. Pointers from At
// stay valid until the record is freed: a slab grows by whole chunks and never moves one.
type Slab[T any] struct {
	chunks []*[chunkLen]T // chunks that this process has found
	head   *slabHead
	space  *Space
}

type slabHead struct {
	used        int32 // records handed out at least once, record 0 included
	free        int32 // the first free record; each has the number of the next in its last four bytes
	idle        int32 // how many are free
	chunks      int32
	first, last int64 // offsets of chunks, in a mapped space
}

// chunkHead precedes every chunk of a mapped space.
type chunkHead struct {
	next   int64
	canary uint64
}

const canary = 0x5a17_c4a5_ee1f_1a75

// Open places the slab in a space, or on the heap when space is nil.
func (s *Slab[T]) Open(space *Space) {
	if space == nil {
		s.head = new(slabHead)
		return
	}
	if !space.onHeap() {
		space.lay(reflect.TypeFor[T]())
		s.space = space
	}
	s.head = Single[slabHead](space)
	space.add(s)
}

func (s *Slab[T]) reset() { s.chunks = s.chunks[:0] }

// refresh finds the chunks that other processes have added.
func (s *Slab[T]) refresh() {
	at := s.head.first
	if n := len(s.chunks); n > 0 {
		last := unsafe.Add(unsafe.Pointer(s.chunks[n-1]), -align)
		at = (*chunkHead)(last).next
	}
	for ; len(s.chunks) < int(s.head.chunks); at = s.view(at).next {
	}
}

// view adds the chunk at an offset to the known chunks.
func (s *Slab[T]) view(at int64) *chunkHead {
	h := (*chunkHead)(s.space.at(at))
	if _ = s.space.mem[at+align+int64(unsafe.Sizeof([chunkLen]T{}))-1]; h.canary != canary {
		panic("flat: a chunk does not begin where it should")
	}
	s.chunks = append(s.chunks, (*[chunkLen]T)(s.space.at(at+align)))
	return h
}

// New returns the number of an unused record. The record is zero, unless it was recycled.
func (s *Slab[T]) New() int32 {
	h := s.head
	if h == nil {
		h = new(slabHead)
		s.head = h
	}
	if i := h.free; i != 0 {
		link := s.link(i)
		h.free, *link = *link, 0
		h.idle--
		return i
	}
	h.used = max(h.used, 1)
	i := h.used
	if int(i/chunkLen) >= len(s.chunks) {
		s.grow()
	}
	h.used++
	return i
}

func (s *Slab[T]) grow() {
	if s.space == nil {
		s.chunks = append(s.chunks, new([chunkLen]T))
		return
	}
	at := s.space.alloc(align + int64(unsafe.Sizeof([chunkLen]T{})))
	(*chunkHead)(s.space.at(at)).canary = canary
	if s.head.chunks == 0 {
		s.head.first = at
	} else {
		(*chunkHead)(s.space.at(s.head.last)).next = at
	}
	s.head.last = at
	s.head.chunks++
	s.view(at)
}

// At returns record i.
func (s *Slab[T]) At(i int32) *T { return &s.chunks[uint32(i)/chunkLen][uint32(i)%chunkLen] }

// link returns the address of the number of the next free record.
func (s *Slab[T]) link(i int32) *int32 {
	r := s.At(i)
	return (*int32)(unsafe.Add(unsafe.Pointer(r), unsafe.Sizeof(*r)-4))
}

// Free zeroes record i and keeps it for the next New. The slab then uses its last four bytes, so another field must
// show whether a record is in use.
func (s *Slab[T]) Free(i int32) {
	var zero T
	*s.At(i) = zero
	s.Recycle(i)
}

// Recycle is Free without zeroing, for records whose next owner sets every field.
func (s *Slab[T]) Recycle(i int32) {
	*s.link(i) = s.head.free
	s.head.free = i
	s.head.idle++
}

// Len returns the number of records in use.
func (s *Slab[T]) Len() int {
	if s.head == nil || s.head.used == 0 {
		return 0
	}
	return int(s.head.used - 1 - s.head.idle)
}

// End returns a number above every record handed out so far. Use it with At to visit all records. Freed records are
// zero except for their last four bytes.
func (s *Slab[T]) End() int32 {
	if s.head == nil {
		return 0
	}
	return s.head.used
}

// setHead makes room for the records below used, of which idle are free and not in a list yet.
func (s *Slab[T]) setHead(used, idle int32) {
	if s.head == nil {
		s.head = new(slabHead)
	}
	s.head.used, s.head.free, s.head.idle = used, 0, idle
	for int(used) > len(s.chunks)*chunkLen {
		s.grow()
	}
}
