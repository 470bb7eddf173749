package flat

import "unsafe"

// Index finds records by a hash of their key, with open addressing and linear probing. It stores no keys; the caller
// compares candidates. The zero Index is ready for use, on the heap.
type Index struct {
	slots []slot // length is a power of two
	head  *indexHead
	space *Space
}

type indexHead struct {
	n    int32
	size int32 // of the table
	at   int64 // offset of the table, in a mapped space
}

// Open places the index in a space, or on the heap when space is nil.
func (x *Index) Open(space *Space) {
	if space == nil {
		x.head = new(indexHead)
		return
	}
	if !space.onHeap() {
		x.space = space
	}
	x.head = Single[indexHead](space)
	space.add(x)
}

func (x *Index) reset() { x.slots = nil }

func (x *Index) refresh() {
	if x.head.size == 0 {
		x.slots = nil
		return
	}
	_ = x.space.mem[x.head.at : x.head.at+int64(x.head.size)*slotSize]
	x.slots = unsafe.Slice((*slot)(x.space.at(x.head.at)), x.head.size)
}

const slotSize = int64(unsafe.Sizeof(slot{}))

type slot struct {
	hash uint32
	rec  int32 // 0: empty
}

// Seek returns the next record whose hash is h, starting p probes after its home, and the p to continue from. It
// returns 0 when there are no more.
//
//	for i, p := x.Seek(h, 0); i != 0; i, p = x.Seek(h, p) { ... }
func (x *Index) Seek(h, p uint32) (rec int32, next uint32) {
	if len(x.slots) == 0 {
		return 0, 0
	}
	mask := uint32(len(x.slots) - 1)
	for ; ; p++ {
		s := x.slots[(h+p)&mask]
		if s.rec == 0 {
			return 0, 0
		}
		if s.hash == h {
			return s.rec, p + 1
		}
	}
}

// Add enters a record under hash h.
func (x *Index) Add(h uint32, rec int32) {
	if x.head == nil {
		x.head = new(indexHead)
	}
	if 4*(int(x.head.n)+1) > 3*len(x.slots) {
		x.grow()
	}
	x.head.n++
	x.place(slot{h, rec})
}

func (x *Index) place(s slot) {
	mask := uint32(len(x.slots) - 1)
	i := s.hash & mask
	for x.slots[i].rec != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = s
}

func (x *Index) grow() {
	old := x.slots
	size := max(16, 2*len(old))
	if x.space == nil {
		x.slots = make([]slot, size)
	} else {
		was := x.head.at
		x.head.at, x.head.size = x.space.alloc(int64(size)*slotSize), int32(size)
		x.refresh()
		if len(old) > 0 {
			defer x.space.release(was, int64(len(old))*slotSize)
		}
	}
	for _, s := range old {
		if s.rec != 0 {
			x.place(s)
		}
	}
}

// Remove removes a record entered under hash h. Records that were probed past it move up, so the table needs no
// tombstones.
func (x *Index) Remove(h uint32, rec int32) {
	if len(x.slots) == 0 {
		return
	}
	mask := uint32(len(x.slots) - 1)
	i := h & mask
	for x.slots[i] != (slot{h, rec}) {
		if x.slots[i].rec == 0 {
			return
		}
		i = (i + 1) & mask
	}
	x.head.n--
	for j := i; ; {
		j = (j + 1) & mask
		s := x.slots[j]
		if s.rec == 0 {
			break
		}
		// s may fill the hole at i only if its home is not between the two.
		if (j-s.hash)&mask >= (j-i)&mask {
			x.slots[i] = s
			i = j
		}
	}
	x.slots[i] = slot{}
}

// Len returns the number of records entered.
func (x *Index) Len() int {
	if x.head == nil {
		return 0
	}
	return int(x.head.n)
}
