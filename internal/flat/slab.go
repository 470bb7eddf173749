// Package flat keeps state as fixed-size records that refer to each other by
// number instead of by pointer: slabs of records, a hash index over them, an
// ordered tree, and interned names. The same layout works on the heap and in a
// mapped file, costs the garbage collector nothing, and a million records are a
// few large blocks.
//
// Record number 0 is never handed out, so a zero link means none.
package flat

import "unsafe"

// chunkBytes is the size that slabs grow by: large enough that a chunk header
// is noise, small enough that a pool with three records does not cost a megabyte.
const chunkBytes = 32 << 10

// Slab is a growing array of records with a free list. The zero Slab is ready
// for use. Pointers from At stay valid until the record is freed: a slab grows by
// whole chunks and never moves one.
type Slab[T any] struct {
	chunks [][]T
	free   []int32
	used   int32 // records handed out at least once, record 0 included
	shift  uint8
}

// New returns the number of a zeroed record.
func (s *Slab[T]) New() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	if s.used == 0 {
		s.used = 1
		var zero T
		for uintptr(2)<<s.shift*max(unsafe.Sizeof(zero), 1) <= chunkBytes {
			s.shift++
		}
	}
	i := s.used
	for int(i>>s.shift) >= len(s.chunks) { // twice at first, where a chunk is one record
		s.chunks = append(s.chunks, make([]T, 1<<s.shift))
	}
	s.used++
	return i
}

// At returns record i.
func (s *Slab[T]) At(i int32) *T {
	return &s.chunks[i>>s.shift][i&(1<<s.shift-1)]
}

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
