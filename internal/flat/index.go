package flat

// Index finds records by a hash of their key: open addressing with linear
// probing. It stores no keys; the caller compares candidates. The zero Index is
// ready for use.
type Index struct {
	slots []slot // a power of two long
	n     int
}

type slot struct {
	hash uint32
	rec  int32 // 0: empty
}

// Seek returns the next record whose hash is h, starting p probes after its home,
// and the p to go on from. It returns 0 when there are no more.
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
	if 4*(x.n+1) > 3*len(x.slots) {
		x.grow()
	}
	x.n++
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
	x.slots = make([]slot, max(16, 2*len(old)))
	for _, s := range old {
		if s.rec != 0 {
			x.place(s)
		}
	}
}

// Remove takes out a record entered under hash h. The records that were probed past
// it move up, so that no tombstones pile up.
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
	x.n--
	for j := i; ; {
		j = (j + 1) & mask
		s := x.slots[j]
		if s.rec == 0 {
			break
		}
		// s may fill the hole at i only if its home does not lie between the two.
		if (j-s.hash)&mask >= (j-i)&mask {
			x.slots[i] = s
			i = j
		}
	}
	x.slots[i] = slot{}
}

// Len returns the number of records entered.
func (x *Index) Len() int { return x.n }
