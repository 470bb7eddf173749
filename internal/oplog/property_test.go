package oplog

// These tests do not run in parallel: they share generators, which rapid sets up when first used.

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/sluicehq/sluice/store"
	"pgregory.net/rapid"
)

func TestAJournalComesBackAsItWasWritten(t *testing.T) {
	type told struct {
		now   store.Time
		ops   []store.Op
		spec  *store.Spec
		alone bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var journal []byte
		var list []told
		for range rapid.IntRange(1, 6).Draw(t, "entries") {
			x := told{now: store.Time(numbers.Draw(t, "now"))}
			from, bound := len(journal), 0
			if rapid.Bool().Draw(t, "define") {
				spec := specs.Draw(t, "spec")
				x.spec, x.alone = &spec, rapid.Bool().Draw(t, "alone")
				journal, bound = AppendDefine(journal, x.now, x.spec, x.alone), BoundSpec(x.spec)
			} else {
				x.ops = someOps.Draw(t, "ops")
				journal, bound = AppendApply(journal, x.now, x.ops), Bound(x.ops)
			}
			if n := len(journal) - from; n == 0 || n%8 != 0 || n > bound {
				t.Fatalf("%d bytes with a bound of %d", n, bound)
			}
			list = append(list, x)
		}
		var e Entry
		rest := append(journal, make([]byte, 16)...)
		for _, x := range list {
			n, err := e.Next(rest)
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
			switch {
			case e.Now != x.now:
				t.Fatalf("at %d, want %d", e.Now, x.now)
			case x.spec == nil:
				if e.Kind != KindApply || !slices.EqualFunc(e.Ops, x.ops, func(a, b store.Op) bool { return reflect.DeepEqual(a, b) }) {
					t.Fatalf("got kind %d\n%+v, want\n%+v", e.Kind, e.Ops, x.ops)
				}
				if !reflect.DeepEqual(e.Spec, store.Spec{}) || e.Alone {
					t.Fatalf("left over from before: %+v %v", e.Spec, e.Alone)
				}
			default:
				if e.Kind != KindDefine || e.Alone != x.alone || !reflect.DeepEqual(&e.Spec, x.spec) || len(e.Ops) > 0 {
					t.Fatalf("got kind %d, alone %v\n%+v, want\n%+v", e.Kind, e.Alone, e.Spec, *x.spec)
				}
			}
		}
		if n, err := e.Next(rest); err != ErrShort || n != 0 {
			t.Fatalf("at the end: %d, %v", n, err)
		}
	})
}

func TestASpecAloneComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := specs.Draw(t, "spec")
		b := AppendSpec([]byte("before"), &spec)
		b, ok := bytes.CutPrefix(b, []byte("before"))
		if !ok || len(b) > BoundSpec(&spec) {
			t.Fatalf("%d bytes with a bound of %d", len(b), BoundSpec(&spec))
		}
		got, err := DecodeSpec(b)
		if err != nil || !reflect.DeepEqual(got, spec) {
			t.Fatalf("%v\n%+v, want\n%+v", err, got, spec)
		}
		if _, err := DecodeSpec(b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]); err != ErrCorrupt {
			t.Fatalf("cut short: %v", err)
		}
		if _, err := DecodeSpec(append(b, 0)); err != ErrCorrupt {
			t.Fatalf("with more behind: %v", err)
		}
	})
}

func TestAFlippedBitIsNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := entries.Draw(t, "entry")
		whole := len(b)
		b = append(b, entries.Draw(t, "next entry")...) // which a changed length would take in
		i := rapid.IntRange(0, whole*8-1).Draw(t, "bit")
		b[i/8] ^= 1 << (i % 8)
		var e Entry
		if n, err := e.Next(b); n != 0 || err != ErrCorrupt && err != ErrShort {
			t.Fatalf("bit %d of %d bytes: %d, %v", i, whole, n, err)
		}
	})
}

func TestACutEntryIsShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := entries.Draw(t, "entry")
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		var e Entry
		if n, err := e.Next(b[:cut:cut]); n != 0 || err != ErrShort {
			t.Fatalf("%d of %d bytes: %d, %v", cut, len(b), n, err)
		}
	})
}
