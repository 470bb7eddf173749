package oplog

import "encoding/binary"

// reader parses a payload. After the first error it is bad, and everything it reads is zero.
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

// flags reads a byte. It fails if bits other than known are set.
func (r *reader) flags(known uint8) uint8 {
	v := r.byte()
	if v&^known != 0 {
		r.fail()
		return 0
	}
	return v
}

// count reads how many items follow, each of at least least bytes. Memory is allocated by this number, so it fails
// if the remaining bytes cannot hold that many.
func (r *reader) count(most, least int) int { return r.fits(r.uvarint(), most, least) }

// fits is count for a number that has been read.
func (r *reader) fits(n uint64, most, least int) int {
	if n > uint64(most) || n*uint64(least) > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

// bytes reads a string without copying it.
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
