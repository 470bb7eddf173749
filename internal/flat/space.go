package flat

import (
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"unsafe"
)

// Space is the memory of records: the heap, or one block that several processes map at different addresses. So a
// block contains no pointers. Chunks and tables are found by offset, and each process has views of them, which it
// can rebuild at any time.
//
// All processes open slabs, indexes and the rest in the same order. That order, with the layout of the records, is
// the layout of the space. A nil Space is the heap; so is one from OnHeap, which can be copied.
type Space struct {
	mem    []byte // the whole range, of which a part is usable; nil on the heap
	head   *spaceHead
	grow   func(size int64) error
	next   int64 // offset of the next fixed part, while parts are opened
	layout uint64
	views  []view
	seen   uint64 // head.grown when the views were made
}

// spaceHead is the beginning of a space.
type spaceHead struct {
	layout uint64
	size   int64  // usable bytes
	end    int64  // end of the allocated bytes
	grown  uint64 // number of allocations
	free   [48]int64
}

// OnHeap returns a space on the heap. Other than a nil Space it knows its parts, so that [Space.CopyTo] can copy them.
func OnHeap() *Space { return new(Space) }

func (s *Space) onHeap() bool { return s == nil || s.mem == nil }

// view is what a process knows about a slab or an index.
type view interface {
	refresh()
	reset()
	copyTo(view) error
	forkTo(view) error
}

const (
	align     = 64 // a cache line
	fixedSize = 64 << 10
)

// Least is the minimum size of a space.
const Least = 256 << 10

// ErrFull is the panic value of a space without room. The step that needed it is half done, and the owner must
// restore the space.
var ErrFull = errors.New("no more room for the state")

// ErrLayout means that a space was created by code with other records.
var ErrLayout = errors.New("the records have another layout")

// Mapped returns the space in mem. If mem begins with zeros, it creates one. grow is called with the required size
// and must make that much of mem usable. Mapped never touches bytes beyond that.
func Mapped(mem []byte, grow func(size int64) error) (*Space, error) {
	if err := grow(Least); err != nil {
		return nil, err
	}
	s := &Space{mem: mem, grow: grow, head: (*spaceHead)(unsafe.Pointer(unsafe.SliceData(mem))), next: pad(int64(unsafe.Sizeof(spaceHead{})))}
	if s.head.end == 0 {
		s.head.size, s.head.end = Least, fixedSize
	}
	return s, nil
}

// Seal ends the opening of parts and fixes the layout. It returns ErrLayout for a space that was created with
// another layout.
func (s *Space) Seal() error {
	switch {
	case s.onHeap():
		return nil
	case s.next > fixedSize:
		panic("flat: the fixed parts do not fit")
	case s.head.layout == 0:
		s.head.layout = s.layout
	case s.head.layout != s.layout:
		return ErrLayout
	}
	if s.head.size < fixedSize || s.head.size > int64(len(s.mem)) || s.head.end > s.head.size {
		return fmt.Errorf("a space of %d bytes of which %d are used", s.head.size, s.head.end)
	}
	s.Reset()
	return nil
}

// Layout identifies the records and their order.
func (s *Space) Layout() uint64 { return s.layout }

// Size returns the used size of the space. Copying that many bytes copies all of it.
func (s *Space) Size() int64 { return s.head.end }

// RoomOf returns the usable size that the space in mem records.
func RoomOf(mem []byte) int64 { return (*spaceHead)(unsafe.Pointer(unsafe.SliceData(mem))).size }

// Refresh updates the views if another process has made the space grow.
func (s *Space) Refresh() {
	if s.head.grown != s.seen {
		s.seen = s.head.grown
		for _, v := range s.views {
			v.refresh()
		}
	}
}

// Reset rebuilds all views, after the space was restored to an earlier state.
func (s *Space) Reset() {
	s.seen = s.head.grown
	for _, v := range s.views {
		v.reset()
		v.refresh()
	}
}

// Single opens a single record of a space, or returns a new one on the heap when s is nil.
func Single[T any](s *Space) *T {
	if s == nil {
		return new(T)
	}
	if s.onHeap() {
		rec := new(T)
		s.add(single[T]{rec})
		return rec
	}
	t := reflect.TypeFor[T]()
	s.lay(t)
	at := s.next
	s.next += pad(int64(t.Size()))
	if s.next > fixedSize {
		panic("flat: the fixed parts do not fit")
	}
	rec := (*T)(s.at(at))
	s.add(single[T]{rec})
	return rec
}

// single is the view of a record that Single opened.
type single[T any] struct{ rec *T }

func (single[T]) refresh() {}
func (single[T]) reset()   {}

func (s single[T]) copyTo(to view) error {
	d, ok := to.(single[T])
	if !ok {
		return ErrLayout
	}
	*d.rec = *s.rec
	return nil
}

// add registers a part, so that it can be rebuilt and copied.
func (s *Space) add(v view) { s.views = append(s.views, v) }

// lay adds a type of record to the layout.
func (s *Space) lay(t reflect.Type) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %d", s.layout, s.next)
	describe(h, t)
	s.layout = h.Sum64()
}

// describe writes the positions of all fields of a record. Records must not contain pointers.
func describe(w interface{ Write([]byte) (int, error) }, t reflect.Type) {
	fmt.Fprintf(w, " %s/%d", t.Kind(), t.Size())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			fmt.Fprintf(w, " %s@%d", f.Name, f.Offset)
			describe(w, f.Type)
		}
	case reflect.Array:
		fmt.Fprintf(w, " [%d]", t.Len())
		describe(w, t.Elem())
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
	default:
		panic("flat: a record holds a " + t.String())
	}
}

func (s *Space) at(offset int64) unsafe.Pointer { return unsafe.Pointer(&s.mem[offset]) }

// alloc returns the offset of size zeroed bytes. Only blocks whose size is a power of two can be released.
func (s *Space) alloc(size int64) int64 {
	h := s.head
	if list := sizeClass(size); list >= 0 && h.free[list] != 0 {
		at := h.free[list]
		h.free[list] = *(*int64)(s.at(at))
		clear(s.mem[at : at+size])
		h.grown++
		return at
	}
	at := h.end
	if end := at + pad(size); end > h.size {
		s.enlarge(end)
	}
	h.end = at + pad(size)
	h.grown++
	return at
}

// enlarge makes the usable part of the space 1.5 times as large, or larger if end requires it.
func (s *Space) enlarge(end int64) {
	const step = 64 << 10
	size := min((max(end, s.head.size+s.head.size/2)+step-1)/step*step, int64(len(s.mem)))
	if size < end {
		panic(ErrFull)
	}
	if err := s.grow(size); err != nil {
		panic(fmt.Errorf("%w: %w", ErrFull, err))
	}
	s.head.size = size
}

func (s *Space) release(at, size int64) {
	list := sizeClass(size)
	*(*int64)(s.at(at)) = s.head.free[list]
	s.head.free[list] = at
}

// Keep stores data of any length and returns its offset and size. It replaces the block at offset at, unless at is
// 0.
func (s *Space) Keep(at, size int64, data []byte) (int64, int64) {
	if at != 0 {
		s.release(at, room(size))
	}
	at = s.alloc(room(int64(len(data))))
	copy(s.mem[at:], data)
	return at, int64(len(data))
}

// Kept returns the data at an offset.
func (s *Space) Kept(at, size int64) []byte { return s.mem[at : at+size : at+size] }

// room returns the power of two that holds size.
func room(size int64) int64 {
	n := int64(align)
	for n < size {
		n *= 2
	}
	return n
}

// sizeClass returns the free list for blocks of a size. It returns -1 if size is not a power of two or is smaller
// than a cache line.
func sizeClass(size int64) int {
	if size < align || size&(size-1) != 0 {
		return -1
	}
	n := 0
	for ; size > 1; size >>= 1 {
		n++
	}
	return n
}

func pad(size int64) int64 { return (size + align - 1) &^ (align - 1) }
