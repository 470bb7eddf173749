package flat

import "math/bits"

// Names interns strings. Equal strings have the same number as long as a reference to it is held. The empty string
// is 0. The zero Names is ready for use, on the heap.
type Names struct {
	recs  Slab[nameRec]
	index Index
	// last is the name that was requested last, because most processes use only one agent. It does not affect
	// results, so each process has its own.
	last int32
}

// Open places the names in a space, or on the heap when space is nil.
func (n *Names) Open(space *Space) {
	n.recs.Open(space)
	n.index.Open(space)
	if space != nil {
		space.add(n)
	}
}

func (n *Names) reset()   { n.last = 0 }
func (n *Names) refresh() {}

// nameRec is a piece of a name. Most names fit one record of 64 bytes.
type nameRec struct {
	hash uint32
	refs int32
	next int32    // the record with the rest of the name
	tags [2]int32 // numbers that users of the name attach
	size uint16
	text [42]byte
}

// fits reports whether a record can be the first of a name, by its length.
func (r *nameRec) fits(name string) bool { return r.next != 0 || int(r.size) == len(name) }

func (n *Names) find(s string) (int32, uint32) {
	h := uint32(Hash(s))
	for i, p := n.index.Seek(h, 0); i != 0; i, p = n.index.Seek(h, p) {
		if n.equal(i, s) {
			return i, h
		}
	}
	return 0, h
}

// Hold returns the number of s and adds a reference to it.
func (n *Names) Hold(s string) int32 {
	if s == "" {
		return 0
	}
	if n.last != 0 {
		// It may have been dropped, and its record may be part of a longer name now.
		if r := n.recs.At(n.last); r.refs > 0 && r.fits(s) && n.equal(n.last, s) {
			r.refs++
			return n.last
		}
	}
	i, h := n.find(s)
	if i == 0 {
		i = n.store(s)
		n.recs.At(i).hash = h
		n.index.Add(h, i)
	}
	n.recs.At(i).refs++
	n.last = i
	return i
}

// Find returns the number of s, or 0 if no reference to it is held.
func (n *Names) Find(s string) int32 {
	if s == "" {
		return 0
	}
	if n.last != 0 {
		if r := n.recs.At(n.last); r.refs > 0 && r.fits(s) && n.equal(n.last, s) {
			return n.last
		}
	}
	i, _ := n.find(s)
	if i != 0 {
		n.last = i
	}
	return i
}

// Keep adds a reference to a name already held.
func (n *Names) Keep(i int32) int32 {
	if i != 0 {
		n.recs.At(i).refs++
	}
	return i
}

// Drop releases a reference. The last one frees the name.
func (n *Names) Drop(i int32) {
	if i == 0 {
		return
	}
	r := n.recs.At(i)
	if r.refs--; r.refs > 0 {
		return
	}
	n.index.Remove(r.hash, i)
	for i != 0 {
		next := n.recs.At(i).next
		n.recs.Free(i)
		i = next
	}
}

// Text returns name i as a string.
func (n *Names) Text(i int32) string {
	if i == 0 {
		return ""
	}
	r := n.recs.At(i)
	if r.next == 0 {
		return string(r.text[:r.size])
	}
	var b []byte
	for ; i != 0; i = n.recs.At(i).next {
		r := n.recs.At(i)
		b = append(b, r.text[:r.size]...)
	}
	return string(b)
}

// Sole reports whether name i has only one reference left.
func (n *Names) Sole(i int32) bool { return n.recs.At(i).refs == 1 }

// Tags returns the numbers attached to name i, initially 0. They link a name to the records about it. They are lost
// when the name is freed.
func (n *Names) Tags(i int32) *[2]int32 { return &n.recs.At(i).tags }

// Len returns the number of names held.
func (n *Names) Len() int { return n.index.Len() }

func (n *Names) store(s string) int32 {
	i := n.recs.New()
	r := n.recs.At(i)
	k := copy(r.text[:], s)
	r.size = uint16(k)
	if k < len(s) {
		r.next = n.store(s[k:])
	}
	return i
}

func (n *Names) equal(i int32, s string) bool {
	if r := n.recs.At(i); r.next == 0 {
		return string(r.text[:r.size]) == s
	}
	for {
		r := n.recs.At(i)
		k := int(r.size)
		if len(s) < k || string(r.text[:k]) != s[:k] {
			return false
		}
		s, i = s[k:], r.next
		if i == 0 {
			return s == ""
		}
	}
}

// Hash returns the hash of a name. It is the same in every process, because processes may share state.
func Hash(s string) uint64 {
	h := uint64(len(s)) ^ 0x9e3779b97f4a7c15
	if len(s) < 8 {
		var tail uint64
		for i := range len(s) {
			tail = tail<<8 | uint64(s[i])
		}
		return mix(h ^ tail)
	}
	last := word(s[len(s)-8:]) // may overlap bytes that the loop reads, which does no harm
	for len(s) > 8 {
		h = mix(h ^ word(s))
		s = s[8:]
	}
	return mix(h ^ last)
}

func word(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Mix spreads the bits of a number, for numeric keys. A single round would leave a pattern in consecutive numbers
// that makes trees 1.5 times as deep.
func Mix(x uint64) uint64 { return mix(mix(x^0x9e3779b97f4a7c15) ^ 0xa0761d6478bd642f) }

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x, 0xd6e8feb86659fd93)
	return hi ^ lo
}
