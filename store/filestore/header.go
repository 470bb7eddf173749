//go:build linux || darwin || windows

package filestore

import (
	"errors"
	"hash/crc32"
	"sync/atomic"
	"unsafe"
)

// header is the first page of a state file.
type header struct {
	magic    [8]byte
	version  uint32 // of this layout, and of what the state machine decides
	check    uint32 // of what does not change: all from version to boot
	layout   uint64 // of the records
	instance uint64 // drawn at random: journals belong to one
	_        [32]byte

	// What changes with every start of the machine.
	boot   [16]byte
	offset int64 // from the clock since that start to the pool's own

	// What changes with every step, under the lock but for reading.
	commit  atomic.Uint64 // see commitWord
	now     int64         // of the last step
	longest int64         // window of a limit: after so long without a step nothing counts any more
	wake    atomic.Int64  // when time alone may let somebody go
	keeper  atomic.Uint64 // the process that sees to that
	holder  int64         // the process that has the lock, or had it last
	swept   int64         // when somebody last looked for waiting processes that have died
	sealed  uint64        // the commit word when the last process left
	seal    uint32        // of the records at that time

	shape     uint64 // changes when the records are written anew, in other places
	compactAt int64  // when that may be worth it again
}

var magic = [8]byte{'S', 'L', 'U', 'I', 'C', 'E', 0, '\n'}

// version changes with the layout of headers and journals, and with what the state machine
// decides: a journal is replayed by the code that wrote it.
const version = 14

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func headerOf(mem []byte) *header { return (*header)(unsafe.Pointer(unsafe.SliceData(mem))) }

func (h *header) sum() uint32 {
	from := unsafe.Offsetof(h.layout)
	fixed := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(h), from)), unsafe.Offsetof(h.boot)-from)
	return crc32.Update(h.version, castagnoli, fixed)
}

// valid reports what is wrong with a header.
func (h *header) valid(layout uint64) error {
	switch {
	case h.magic != magic:
		return errForeign
	case h.version > version:
		return errNewer
	case h.check != h.sum():
		return errDamaged
	case h.version < version || h.layout != layout:
		return errOther
	}
	return nil
}

// commitWord is what makes a step count: the journal that is written, how far, and whether a
// step is being made. It is one word so that it changes at once.
type commitWord struct {
	journal uint64 // its number, 24 bits
	end     int64  // of the steps in it, in units of 8 bytes: 39 bits
	dirty   bool   // the state is in the middle of a step
}

const endBits = 39

func (h *header) committed() commitWord {
	w := h.commit.Load()
	return commitWord{journal: w >> (endBits + 1), end: int64(w>>1&(1<<endBits-1)) * 8, dirty: w&1 != 0}
}

func (c commitWord) word() uint64 {
	w := c.journal<<(endBits+1) | uint64(c.end/8)<<1
	if c.dirty {
		w |= 1
	}
	return w
}

func (h *header) set(c commitWord) { h.commit.Store(c.word()) }

var errShort = errors.New("the file is shorter than it should be")
