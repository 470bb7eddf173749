package sharedlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"

	"github.com/sluicehq/sluice/store"
)

// In a log an entry is framed by its length, as a varint, in front of it and its stamp behind it, in little-endian order:
// 8 to 10 bytes more than the entry. The stamp comes last because the engine adds it, and so that the bytes before a position
// are the stamp of the entry that ends there.

const (
	// StampSize is the size of a stamp: enough for microseconds until the year 4253.
	StampSize = 7
	// MaxFrame is the largest size of an entry with its frame.
	MaxFrame = MaxEntry + maxLength + StampSize

	maxLength = 3 // bytes of the length of MaxEntry
	maxStamp  = 1<<(8*StampSize) - 1
)

// A segment begins with a header: a mark, and the stamp of the entry before it.
const (
	// Magic begins a segment. A format that old programs cannot read has another.
	Magic = "sluice1\n"
	// HeaderSize is the size of a header.
	HeaderSize = int64(len(Magic)) + StampSize
)

// Header returns the beginning of a segment that follows an entry stamped t.
func Header(t store.Time) []byte { return AppendStamp([]byte(Magic), t) }

// FrameSize returns the size in the log of an entry of n bytes.
func FrameSize(n int) int64 {
	return int64((bits.Len(uint(n)|1)+6)/7 + n + StampSize)
}

// AppendFrame appends an entry with its length to b. The engine adds the stamp.
func AppendFrame(b, entry []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(entry))), entry...)
}

// AppendStamp appends a stamp to b.
func AppendStamp(b []byte, t store.Time) []byte {
	for i := range StampSize {
		b = append(b, byte(t>>(8*i)))
	}
	return b
}

// ReadStamp reads the stamp at the beginning of b, which must hold one.
func ReadStamp(b []byte) (t store.Time) {
	for i := range StampSize {
		t |= store.Time(b[i]) << (8 * i)
	}
	return t
}

// Entry is one entry of a log.
type Entry struct {
	Body  []byte // of the Data that it came from
	Stamp store.Time
	At    Position // after the entry
}

// errCut reports that bytes end within an entry.
var errCut = errors.New("it ends within an entry")

// cut returns the first entry of b and its size.
func cut(b []byte) (body []byte, stamp store.Time, size int, err error) {
	n, used := binary.Uvarint(b[:min(len(b), maxLength)])
	switch {
	case used <= 0 && len(b) < maxLength:
		return nil, 0, 0, errCut
	case used <= 0, n > MaxEntry, used > 1 && b[used-1] == 0: // the last: a shorter length would do
		return nil, 0, 0, ErrDamaged
	}
	size = used + int(n) + StampSize
	if size > len(b) {
		return nil, 0, 0, errCut
	}
	end := used + int(n)
	return b[used:end:end], ReadStamp(b[end:]), size, nil
}

// whole returns the length of the whole entries at the beginning of b, and the last stamp. It returns [ErrDamaged] if
// something else follows them than the beginning of an entry.
func whole(b []byte, before store.Time) (n int, last store.Time, err error) {
	for n < len(b) {
		_, stamp, size, err := cut(b[n:])
		if err != nil {
			if errors.Is(err, errCut) {
				err = nil
			}
			return n, before, err
		}
		n, before = n+size, stamp
	}
	return n, before, nil
}

// All yields the entries of Data in order. Those that a [Log] returned are whole, so the error is always nil; it is
// [ErrDamaged] for other bytes, and ends the sequence.
func (e Entries) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		at := e.From
		for b := e.Data; len(b) > 0; {
			body, stamp, size, err := cut(b)
			if err != nil {
				yield(Entry{At: at}, fmt.Errorf("%w at %v: %w", ErrDamaged, at, err))
				return
			}
			b = b[size:]
			at.Offset, at.Stamp = at.Offset+int64(size), stamp
			if !yield(Entry{body, stamp, at}, nil) {
				return
			}
		}
	}
}

// Slice makes Entries of the bytes of a segment that begin StampSize before at, for engines. It checks that they follow at,
// and leaves out an entry that they end within, which is right if the engine returned no more than MaxRead after at, and
// damage otherwise.
func Slice(at Position, raw []byte) (Entries, error) {
	e := Entries{From: at, At: at}
	switch {
	case len(raw) < StampSize:
		return e, fmt.Errorf("%w: it ends before %v", ErrLost, at)
	case ReadStamp(raw) != at.Stamp:
		return e, fmt.Errorf("%w: it has another entry before %v", ErrLost, at)
	}
	data := raw[StampSize:]
	n, last, err := whole(data, at.Stamp)
	if err == nil && n < len(data) {
		e.More = true
		if len(data) < MaxRead {
			err = errCut
		}
	}
	e.Data, e.At.Offset, e.At.Stamp = data[:n:n], at.Offset+int64(n), last
	if err != nil {
		return e, fmt.Errorf("%w at %v: %w", ErrDamaged, e.At, err)
	}
	e.More = e.More || len(data) >= MaxRead
	return e, nil
}

// SliceOwn is Slice for Append: the own entry of n bytes begins at the offset own. What follows it in raw is left for a later
// Read.
func SliceOwn(at Position, raw []byte, own int64, n int) (Entries, error) {
	if own < at.Offset {
		return Entries{From: at, At: at}, fmt.Errorf("%w: it ends before %v", ErrLost, at)
	}
	size, rest := FrameSize(n), []byte(nil)
	between := own - at.Offset + StampSize
	reached := between+size <= int64(len(raw))
	if reached {
		raw, rest = raw[:between], raw[between:]
	}
	e, err := Slice(at, raw)
	if err != nil {
		return e, err
	}
	if reached && e.At.Offset != own {
		return e, fmt.Errorf("%w at %v: an entry overlaps the one at %d", ErrDamaged, e.At, own)
	}
	if e.Own = reached; reached {
		e.Stamp = ReadStamp(rest[size-StampSize:])
		e.At.Offset, e.At.Stamp, e.More = own+size, e.Stamp, false
	} else {
		e.More = true
	}
	return e, nil
}
