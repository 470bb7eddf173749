package sharedlog_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

const now store.Time = 1_700_000_000_123_457

// logOf frames entries, stamped now, now+1, ...
func logOf(entries ...string) []byte {
	var b []byte
	for i, e := range entries {
		b = sharedlog.AppendStamp(sharedlog.AppendFrame(b, []byte(e)), now+store.Time(i))
	}
	return b
}

func bodies(t *testing.T, e sharedlog.Entries) (all []string) {
	t.Helper()
	for entry, err := range e.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(entry.Body))
	}
	return all
}

var start = sharedlog.Position{Incarnation: 3, Segment: 100, Offset: 140, Stamp: now - 1}

// after returns the bytes of a segment as an engine finds them in front of and behind start.
func after(log []byte) []byte { return append(sharedlog.AppendStamp(nil, start.Stamp), log...) }

func TestEntriesComeBack(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", sharedlog.MaxEntry)
	want := []string{"", "a", strings.Repeat("b", 127), strings.Repeat("c", 128), big}
	log := logOf(want...)
	e, err := sharedlog.Slice(start, after(log))
	if err != nil || e.More {
		t.Fatalf("%v, more: %v", err, e.More)
	}
	if got := bodies(t, e); !equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	end := sharedlog.Position{Incarnation: 3, Segment: 100, Offset: 140 + int64(len(log)), Stamp: now + 4}
	if e.At != end {
		t.Errorf("goes on at %v, want %v", e.At, end)
	}
	at := start.Offset
	for entry, err := range e.All() {
		if err != nil {
			t.Fatal(err)
		}
		if at += sharedlog.FrameSize(len(entry.Body)); entry.At.Offset != at || entry.At.Stamp != entry.Stamp {
			t.Errorf("an entry ends at %v, want %d", entry.At, at)
		}
	}
}

func equal(a, b []string) bool { return strings.Join(a, "|") == strings.Join(b, "|") }

func TestAnEntryCostsAtMostTwelveBytesMore(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 127, 128, 1 << 14, sharedlog.MaxEntry} {
		framed := len(sharedlog.AppendFrame(nil, make([]byte, n))) + sharedlog.StampSize
		if int64(framed) != sharedlog.FrameSize(n) || framed > n+12 || framed > sharedlog.MaxFrame {
			t.Errorf("%d bytes take %d, FrameSize says %d", n, framed, sharedlog.FrameSize(n))
		}
	}
}

func TestStampsComeBack(t *testing.T) {
	t.Parallel()
	for _, want := range []store.Time{0, 1, now, 1<<56 - 1} {
		if got := sharedlog.ReadStamp(sharedlog.AppendStamp(nil, want)); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}

// An engine that returns at most MaxRead bytes cuts within an entry. A log that ends there is damaged.
func TestACutEntryIsLeftOut(t *testing.T) {
	t.Parallel()
	entry := strings.Repeat("x", 1000)
	var log []byte
	for len(log) < sharedlog.MaxRead {
		log = append(log, logOf(entry)...)
	}
	e, err := sharedlog.Slice(start, after(log[:sharedlog.MaxRead]))
	if err != nil || !e.More || int64(len(e.Data))%sharedlog.FrameSize(1000) != 0 {
		t.Errorf("%v, more: %v, %d bytes", err, e.More, len(e.Data))
	}
	two := logOf("one", "two")
	for n := range len(two) {
		e, err := sharedlog.Slice(start, after(two[:n]))
		if isWhole := n == 0 || n == len(two)/2; isWhole != (err == nil) || err != nil && !errors.Is(err, sharedlog.ErrDamaged) {
			t.Errorf("cut after %d bytes: %v", n, err)
		}
		if want := n / (len(two) / 2); len(bodies(t, e)) != want {
			t.Errorf("cut after %d bytes: %d entries, want %d", n, len(bodies(t, e)), want)
		}
	}
}

func TestAnotherEntryBeforeThePositionIsALoss(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{
		"nothing":       nil,
		"half a stamp":  after(nil)[:3],
		"another stamp": sharedlog.AppendStamp(nil, start.Stamp+1),
	} {
		if _, err := sharedlog.Slice(start, raw); !errors.Is(err, sharedlog.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sharedlog.SliceOwn(start, after(nil), start.Offset-1, 1); !errors.Is(err, sharedlog.ErrLost) {
		t.Errorf("an entry before the position: %v", err)
	}
}

func TestTheOwnEntryAndWhatFollowsAreLeftOut(t *testing.T) {
	t.Parallel()
	others := logOf("a", "b")
	own := start.Offset + int64(len(others))
	raw := after(append(bytes.Clone(others), logOf("own", "later")...))
	e, err := sharedlog.SliceOwn(start, raw, own, len("own"))
	if err != nil || !e.Own || e.More || e.Stamp != now || !equal(bodies(t, e), []string{"a", "b"}) {
		t.Errorf("%v %+v", err, e)
	}
	if want := own + sharedlog.FrameSize(3); e.At.Offset != want || e.At.Stamp != now {
		t.Errorf("goes on at %v, want %d", e.At, want)
	}

	// The engine returned less than what lies between.
	e, err = sharedlog.SliceOwn(start, after(logOf("a")), own, len("own"))
	if err != nil || e.Own || !e.More || e.Stamp != 0 || e.At.Stamp != now || !equal(bodies(t, e), []string{"a"}) {
		t.Errorf("not reached: %v %+v", err, e)
	}
	if _, err := sharedlog.SliceOwn(start, raw, own-1, len("own")); !errors.Is(err, sharedlog.ErrDamaged) {
		t.Errorf("overlapping: %v", err)
	}
}

func TestBytesThatAreNoEntries(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]string{
		"a length that is too large":      "\xff\xff\x7f12345678",
		"a length without an end":         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"a length longer than it need be": "\x81\x00x1234567",
	} {
		e, err := sharedlog.Slice(start, after(append(logOf("a"), log...)))
		if !errors.Is(err, sharedlog.ErrDamaged) || !equal(bodies(t, e), []string{"a"}) {
			t.Errorf("%s: %v, %d entries", name, err, len(bodies(t, e)))
		}
	}
}

// Whatever an engine returns, a reader gets whole entries, in the bounds, and a position that fits them, or an error.
func FuzzSlice(f *testing.F) {
	f.Add([]byte{}, int64(0))
	f.Add(logOf("a", "", strings.Repeat("x", 200)), int64(10))
	f.Add(logOf("a", "b")[:12], int64(9))
	f.Add([]byte("\xff\xff\xff\xff"), int64(-1))
	f.Add([]byte("\x80\x00"), int64(1<<62))
	f.Fuzz(func(t *testing.T, log []byte, own int64) {
		e, err := sharedlog.Slice(start, after(log))
		check(t, log, e, err)
		o, err := sharedlog.SliceOwn(start, after(log), start.Offset+own%(1<<40), 5)
		if o.Own && (err != nil || o.At.Offset != start.Offset+own%(1<<40)+sharedlog.FrameSize(5)) {
			t.Errorf("the own entry is at %v: %v", o.At, err)
		}
		for entry, err := range (sharedlog.Entries{Data: log}).All() {
			if err != nil && !errors.Is(err, sharedlog.ErrDamaged) || len(entry.Body) > sharedlog.MaxEntry {
				t.Errorf("%d bytes, %v", len(entry.Body), err)
			}
		}
	})
}

func check(t *testing.T, log []byte, e sharedlog.Entries, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, sharedlog.ErrDamaged) {
		t.Errorf("an error of another kind: %v", err)
	}
	var again []byte
	at := start
	for entry, err := range e.All() {
		if err != nil || len(entry.Body) > sharedlog.MaxEntry {
			t.Fatalf("not whole: %v, %d bytes", err, len(entry.Body))
		}
		again = sharedlog.AppendStamp(sharedlog.AppendFrame(again, entry.Body), entry.Stamp)
		at = entry.At
	}
	if !bytes.Equal(again, e.Data) || !bytes.HasPrefix(log, e.Data) {
		t.Error("the entries are not the bytes that they were read from")
	}
	if at != e.At {
		t.Errorf("goes on at %v, want %v", e.At, at)
	}
	if err == nil && !e.More && len(e.Data) != len(log) {
		t.Errorf("%d bytes were left out without a word", len(log)-len(e.Data))
	}
}
