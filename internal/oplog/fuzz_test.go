package oplog

import (
	"reflect"
	"testing"

	"github.com/sluicehq/sluice/store"
)

// FuzzNext reads the input as it is, and as a payload whose checksum is right.
func FuzzNext(f *testing.F) {
	s := spec()
	for _, b := range [][]byte{
		AppendApply(nil, now, nil),
		AppendApply(nil, now, []store.Op{acquire()}),
		AppendApply(nil, now, []store.Op{answer(), heartbeat()}),
		AppendDefine(nil, now, &s, true),
	} {
		f.Add(b)
		payload, _, _ := unseal(b)
		f.Add(payload)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, src []byte) {
		checkNext(t, src)
		checkNext(t, framed(src))
	})
}

func checkNext(t *testing.T, src []byte) {
	var e, again Entry
	n, err := e.Next(src)
	if cap(e.Ops) > len(src) || cap(e.observed)*observedLeast > 2*len(src)+64 || cap(e.waits) > 2*len(src)+8 || cap(e.amounts)*amountLeast > 2*len(src)+16 {
		t.Errorf("%d bytes made room for %d ops, %d statements, %d names", len(src), cap(e.Ops), cap(e.observed), cap(e.waits))
	}
	if err != nil {
		if n != 0 || e.Kind != 0 || len(e.Ops) != 0 || err != ErrShort && err != ErrCorrupt {
			t.Errorf("%d, %v with kind %d and %d ops", n, err, e.Kind, len(e.Ops))
		}
		return
	}
	if n < headerLen || n > len(src) || n%align != 0 {
		t.Fatalf("took %d of %d bytes", n, len(src))
	}
	var b []byte
	switch e.Kind {
	case KindApply:
		b = AppendApply(nil, e.Now, e.Ops)
	case KindDefine:
		b = AppendDefine(nil, e.Now, &e.Spec, e.Alone)
	}
	if m, err := again.Next(b); err != nil || m != len(b) {
		t.Fatalf("written again: %d of %d bytes, %v", m, len(b), err)
	}
	if again.Kind != e.Kind || again.Now != e.Now || again.Alone != e.Alone ||
		!reflect.DeepEqual(none(again.Ops), none(e.Ops)) || !reflect.DeepEqual(again.Spec, e.Spec) {
		t.Errorf("written again it is another: %+v, was %+v", again, e)
	}
}

func FuzzDecodeSpec(f *testing.F) {
	s := spec()
	f.Add(AppendSpec(nil, &s))
	f.Add(AppendSpec(nil, &store.Spec{}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := DecodeSpec(src)
		if err != nil {
			if err != ErrCorrupt || !reflect.DeepEqual(s, store.Spec{}) {
				t.Errorf("%v %+v", err, s)
			}
			return
		}
		again, err := DecodeSpec(AppendSpec(nil, &s))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("written again it is another: %v %+v, was %+v", err, again, s)
		}
	})
}
