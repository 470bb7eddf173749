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
	version  uint32 // version of this layout, and of the state machine's decisions
	check    uint32 // checksum of the constant fields: version, and layout to boot
	layout   uint64 // layout of the records
	instance uint64 // random number that ties journals to this file
	_        [32]byte

	// These change with every boot of the machine.
	boot   [16]byte
	offset int64 // from the clock since boot to the pool's clock

	// These change with every step. Writing them needs the lock, reading does not.
	commit  atomic.Uint64 // see commitWord
	now     int64         // time of the last step
	longest int64         // longest window of a limit, in microseconds: after that long without a step nothing counts
	wake    atomic.Int64  // when time alone may make a grant possible
	keeper  atomic.Uint64 // the process that wakes at that time
	holder  int64         // pid of the process that holds the lock, or held it last
	swept   int64         // when a process last looked for dead waiting processes
	sealed  uint64        // the commit word when the last process left
	seal    uint32        // checksum of the records at that time

	shape     uint64 // changes when the records are rewritten at other positions
	compactAt int64  // when compaction may be worthwhile again
}

var magic = [8]byte{'S', 'L', 'U', 'I', 'C', 'E', 0, '\n'}

// version changes with the layout of headers and journals, and with the decisions of the state machine: a journal
// must be replayed by the code that wrote it.
const version = 17

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func headerOf(mem []byte) *header { return (*header)(unsafe.Pointer(unsafe.SliceData(mem))) }

func (h *header) sum() uint32 {
	from := unsafe.Offsetof(h.layout)
	fixed := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(h), from)), unsafe.Offsetof(h.boot)-from)
	return crc32.Update(h.version, castagnoli, fixed)
}

// valid returns an error if the header cannot be used.
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

// commitWord is the word that commits a step: the current journal, the end of its steps, and whether a step is in
// progress. It fits one word so that it changes atomically.
type commitWord struct {
	journal uint64 // number of the journal, 24 bits
	end     int64  // end of its steps in bytes, stored in units of 8: 39 bits
	dirty   bool   // a step is in progress
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
