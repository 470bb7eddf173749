package replica

import (
	"encoding/binary"
	"time"
)

// reader parses an entry or a snapshot. After the first flaw it is bad, and everything that it reads is zero.
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

// int reads what appendInt wrote.
func (r *reader) int() int {
	v := r.varint()
	if v != int64(int32(v)) {
		r.fail()
		return 0
	}
	return int(v)
}

// appendInt appends a number, within what an int has on every machine.
func appendInt(b []byte, v int) []byte {
	return binary.AppendVarint(b, min(max(int64(v), -1<<31), 1<<31-1))
}

// most reads a number of at most n.
func (r *reader) most(n uint64) uint64 {
	v := r.uvarint()
	if v > n {
		r.fail()
		return 0
	}
	return v
}

// fixed reads a number of n bytes, the lowest first.
func (r *reader) fixed(n int) (v uint64) {
	for i, c := range r.bytes(n) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// bytes reads n bytes without copying them.
func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// sized reads at most n bytes that follow their number.
func (r *reader) sized(n int) []byte { return r.bytes(int(r.most(uint64(n)))) }

// duration reads what appendDuration wrote.
func (r *reader) duration() time.Duration {
	v := r.varint()
	if v&1 != 0 {
		return time.Duration(v >> 1)
	}
	if v >>= 1; v > longest/1000 || v < -longest/1000 {
		r.fail()
		return 0
	}
	return time.Duration(v) * time.Microsecond
}

// longest bounds durations, in nanoseconds. It is far beyond what any operation may have.
const longest = 1 << 61

// appendDuration appends a duration in microseconds, or in nanoseconds if it has a fraction of a microsecond.
func appendDuration(b []byte, d time.Duration) []byte {
	d = min(max(d, -longest), longest)
	if d%time.Microsecond == 0 {
		return binary.AppendVarint(b, int64(d/time.Microsecond)<<1)
	}
	return binary.AppendVarint(b, int64(d)<<1|1)
}

func appendFixed(b []byte, v uint64, n int) []byte {
	for i := range n {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

func appendSized[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
