// Package flat keeps state as fixed-size records that refer to each other by
// number instead of by pointer: slabs of records, a hash index over them, an
// ordered tree, and interned names. The same layout works on the heap and in a
// mapped file, costs the garbage collector nothing, and a million records are a
// few large blocks.
//
// Record number 0 is never handed out, so a zero link means none.
package flat

// chunkLen is how many records a slab grows by: a constant, so that finding a record
// is two loads and a mask.
const chunkLen = 64

// Slab is a growing array of records with a free list. The zero Slab is ready
// for use. Pointers from At stay valid until the record is freed: a slab grows by
// whole chunks and never moves one.
type Slab[T any] struct {
	chunks []*[chunkLen]T
	free   []int32
	used   int32 // records handed out at least once, record 0 included
}

// New returns the number of a record: zeroed, unless it was recycled.
func (s *Slab[T]) New() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	s.used = max(s.used, 1)
	i := s.used
	if int(i/chunkLen) >= len(s.chunks) {
		s.chunks = append(s.chunks, new([chunkLen]T))
	}
	s.used++
	return i
}

// At returns record i.
func (s *Slab[T]) At(i int32) *T { return &s.chunks[uint32(i)/chunkLen][uint32(i)%chunkLen] }

// Free zeroes record i and keeps it for the next New.
func (s *Slab[T]) Free(i int32) {
	var zero T
	*s.At(i) = zero
	s.free = append(s.free, i)
}

// Recycle is Free for a record that its next owner will set field by field: it
// is not zeroed.
func (s *Slab[T]) Recycle(i int32) { s.free = append(s.free, i) }

// Len returns the number of records in use.
func (s *Slab[T]) Len() int {
	if s.used == 0 {
		return 0
	}
	return int(s.used) - 1 - len(s.free)
}

// End returns a number above every record handed out so far: with At, the way
// to visit them all. Freed records are zero.
func (s *Slab[T]) End() int32 { return s.used }
