// Package oplog is a compact binary form of the operations on a pool, for a journal. Replaying it leads to the same
// decisions. It does no I/O and reads no clock.
//
// An entry is
//
//	u32  length of the payload, little-endian; zero: no entry here
//	u32  CRC-32C over the length and the payload
//	...  payload: a byte for the kind, the time, and what the kind has
//	0    zeros, up to a multiple of 8 bytes
//
// Numbers in the payload are varints, signed ones in zigzag form. A new layout of the payload is a new kind.
package oplog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/sluicehq/sluice/store"
)

// The kinds of entry.
const (
	KindDefine = 2 // a member opened the pool
	KindApply  = 3 // operations were applied; 1 had amounts by the index of a limit
)

const (
	// MaxEntry is the size of the largest entry. A 32-bit int can hold it.
	MaxEntry = 1<<31 - align
	// MaxObserved is how many statements of limits one operation can carry.
	MaxObserved = 1 << 16

	headerLen  = 8
	align      = 8
	maxVarint  = binary.MaxVarintLen64
	maxCount   = binary.MaxVarintLen32 // bytes of a length or a count
	tooLarge   = MaxEntry + 1
	maxPayload = MaxEntry - headerLen
)

var (
	// ErrShort is returned if there is no entry, or only a part of one.
	ErrShort = errors.New("oplog: no whole entry")
	// ErrCorrupt is returned for bytes that this package has not written, or that have changed since.
	ErrCorrupt = errors.New("oplog: corrupt")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendApply appends an entry: at time now these ops were applied. It does not store results. It allocates nothing
// if dst has room. It appends nothing if no entry can hold the ops; see [Bound].
func AppendApply(dst []byte, now store.Time, ops []store.Op) []byte {
	if len(ops) > store.MaxBatch {
		return dst
	}
	start := len(dst)
	dst = begin(dst, KindApply, now)
	dst = appendUvarint(dst, uint64(len(ops)))
	for i := range ops {
		if len(ops[i].Observed) > MaxObserved {
			return dst[:start]
		}
		dst = appendOp(dst, &ops[i])
	}
	return seal(dst, start)
}

// AppendDefine appends an entry: at time now a member opened the pool with spec. alone says that it was the only
// member. It appends nothing if no entry can hold the spec; see [BoundSpec].
func AppendDefine(dst []byte, now store.Time, spec *store.Spec, alone bool) []byte {
	if !specFits(spec) {
		return dst
	}
	start := len(dst)
	dst = begin(dst, KindDefine, now)
	dst = append(dst, bit(alone, uint8(1)))
	dst = AppendSpec(dst, spec)
	return seal(dst, start)
}

// Bound returns an upper bound on the size of the entry that [AppendApply] would make. It is more than [MaxEntry] if
// no entry can hold the ops.
func Bound(ops []store.Op) int {
	if len(ops) > store.MaxBatch {
		return tooLarge
	}
	n := uint64(entryFixed + maxCount)
	for i := range ops {
		if len(ops[i].Observed) > MaxObserved {
			return tooLarge
		}
		n += boundOp(&ops[i])
	}
	return int(min(n, tooLarge))
}

// BoundSpec returns an upper bound on the size of the entry that [AppendDefine] would make, and so on what
// [AppendSpec] appends. It is more than [MaxEntry] if no entry can hold the spec.
func BoundSpec(spec *store.Spec) int {
	if !specFits(spec) {
		return tooLarge
	}
	return int(min(entryFixed+1+boundSpec(spec), tooLarge))
}

// entryFixed bounds the size of header, kind, time and padding.
const entryFixed = headerLen + 1 + maxVarint + align - 1

// begin appends an empty header, the kind and the time.
func begin(dst []byte, kind uint8, now store.Time) []byte {
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0, kind)
	return appendVarint(dst, int64(now))
}

// seal pads the entry that starts at start and fills in its header.
func seal(dst []byte, start int) []byte {
	end := len(dst)
	size := end - start - headerLen
	if size > maxPayload {
		return dst[:start]
	}
	for range -(end - start) & (align - 1) {
		dst = append(dst, 0)
	}
	// The length is summed in the place of the checksum, next to the payload. It is written to its own place last,
	// so that an incomplete entry does not look like one.
	sum := dst[start+4 : end]
	binary.LittleEndian.PutUint32(sum, uint32(size))
	binary.LittleEndian.PutUint32(sum, crc32.Update(0, castagnoli, sum))
	binary.LittleEndian.PutUint32(dst[start:], uint32(size))
	return dst
}

func appendUvarint(dst []byte, v uint64) []byte {
	if v < 0x80 {
		return append(dst, byte(v))
	}
	return binary.AppendUvarint(dst, v)
}

func appendVarint(dst []byte, v int64) []byte {
	return appendUvarint(dst, uint64(v)<<1^uint64(v>>63))
}

func appendString(dst []byte, s string) []byte {
	return append(appendUvarint(dst, uint64(len(s))), s...)
}

// bit returns b if set is true, else 0.
func bit[T uint8 | uint32](set bool, b T) T {
	if set {
		return b
	}
	return 0
}
