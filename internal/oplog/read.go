package oplog

import "encoding/binary"

// reader takes a payload apart. After the first thing that is wrong it is bad, and all
// that it reads is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) byte() uint8 {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) int() int {
	v := r.varint()
	if int64(int(v)) != v {
		r.fail()
		return 0
	}
	return int(v)
}

// flags reads a byte of which only some bits mean something.
func (r *reader) flags(known uint8) uint8 {
	v := r.byte()
	if v&^known != 0 {
		r.fail()
		return 0
	}
	return v
}

// count reads how many things follow that take at least so many bytes each. Memory is
// given out by it, so it promises no more than is there.
func (r *reader) count(most, least int) int {
	n := r.uvarint()
	if n > uint64(most) || n*uint64(least) > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads a string where it lies.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string { return string(r.bytes()) }
