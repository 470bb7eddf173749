package oplog

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/sluicehq/sluice/store"
)

// Entry is one decoded entry. The zero Entry is ready for use. Using one Entry for a whole journal reuses its
// memory. It is not safe for concurrent use.
type Entry struct {
	Kind  uint8
	Now   store.Time
	Ops   []store.Op // for KindApply; valid, except for strings, until the next call of Next
	Spec  store.Spec // for KindDefine; the caller may keep it
	Alone bool

	amounts  []store.Amount
	observed []store.Observed
	waits    []string
	seen     [128]string // recently read strings, by checksum
}

// Next decodes the entry at the start of src and returns its size in bytes, a multiple of 8. After an error,
// [ErrShort] or [ErrCorrupt], e is empty.
func (e *Entry) Next(src []byte) (n int, err error) {
	e.clear()
	payload, n, err := unseal(src)
	if err != nil {
		return 0, err
	}
	r := reader{b: payload}
	e.Kind = r.byte()
	e.Now = store.Time(r.varint())
	switch e.Kind {
	case KindApply:
		e.readOps(&r)
	case KindDefine:
		e.Alone = r.flags(1) != 0
		e.Spec = readSpec(&r)
	default:
		r.fail()
	}
	if r.bad || len(r.b) > 0 {
		e.clear()
		return 0, ErrCorrupt
	}
	return n, nil
}

func (e *Entry) clear() {
	e.Kind, e.Now, e.Alone = 0, 0, false
	e.Spec = store.Spec{}
	e.Ops, e.observed, e.waits = e.Ops[:0], e.observed[:0], e.waits[:0]
	e.amounts = e.amounts[:0]
}

// unseal checks the frame of the entry at the start of src. It returns the payload and the size of the whole entry.
func unseal(src []byte) (payload []byte, n int, err error) {
	if len(src) < headerLen {
		return nil, 0, ErrShort
	}
	size := binary.LittleEndian.Uint32(src)
	switch {
	case size == 0:
		return nil, 0, ErrShort
	case size > maxPayload:
		return nil, 0, ErrCorrupt
	}
	end := headerLen + int(size)
	n = end + -end&(align-1)
	if len(src) < n {
		return nil, 0, ErrShort
	}
	payload = src[headerLen:end]
	sum := crc32.Update(crc32.Update(0, castagnoli, src[:4]), castagnoli, payload)
	if sum != binary.LittleEndian.Uint32(src[4:]) {
		return nil, 0, ErrCorrupt
	}
	for _, b := range src[end:n] {
		if b != 0 {
			return nil, 0, ErrCorrupt
		}
	}
	return payload, n, nil
}

func (e *Entry) readOps(r *reader) {
	n := r.count(store.MaxBatch, 1)
	if n > cap(e.Ops) {
		e.Ops = make([]store.Op, n)
	}
	e.Ops = e.Ops[:n]
	for i := range e.Ops {
		if e.readOp(r, &e.Ops[i]); r.bad {
			return
		}
	}
}

// text reads a string. The same few names occur again and again, so it reuses recently read strings.
func (e *Entry) text(r *reader) string {
	b := r.bytes()
	if len(b) > store.MaxName {
		return string(b) // cached strings must stay small
	}
	s := &e.seen[crc32.Update(0, castagnoli, b)%uint32(len(e.seen))]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}
