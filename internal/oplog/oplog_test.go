package oplog

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

const now store.Time = 1_790_000_000_000_000

// acquire is what a pool is told most.
func acquire() store.Op {
	return store.Op{
		Kind: store.OpAcquire, ID: store.ID{Session: 0x9e3779b97f4a7c15}, Agent: "agent-0042", Class: 1,
		Amounts: []store.Amount{{Unit: "requests", N: 1}, {Unit: "input_tokens", N: 2000}}, Wait: 30 * time.Second, TTL: 5 * time.Minute,
	}
}

func answer() store.Op {
	return store.Op{
		Kind: store.OpAnswer, ID: store.ID{Session: 0x9e3779b97f4a7c15, N: 123456}, Verdict: store.VerdictOK,
		Observed: []store.Observed{
			{Limit: "hour", Size: 5000, Remaining: 4321, ResetIn: 12 * time.Minute},
			{Limit: "minute", Size: -1, Remaining: 12, ResetIn: -1},
		},
	}
}

func heartbeat() store.Op {
	return store.Op{
		Kind: store.OpHeartbeat, ID: store.ID{Session: 7}, Agent: "agent-0042", User: "ada", Machine: "host",
		WaitsFor: []string{"agent-0001", "agent-0002"}, Slots: store.Slots{Max: 3, TTL: time.Minute},
	}
}

func spec() store.Spec {
	return store.Spec{
		Name:    "github",
		Limits:  []store.Limit{{Name: "hour", Kind: store.Fixed, Unit: "requests", Size: 5000, Window: time.Hour, Reset: now}},
		Classes: []store.Class{{Name: "high", Weight: 4}, {Name: "low", Weight: 1}},
		Light:   store.Light{Green: 400, Red: 100, All: true}, Lease: -1,
	}
}

// framed puts a frame around any payload.
func framed(payload []byte) []byte {
	b := seal(append(make([]byte, headerLen), payload...), 0)
	return slices.Clip(b)
}

func TestLayout(t *testing.T) {
	t.Parallel()
	op := store.Op{Kind: store.OpClose, ID: store.ID{Session: 1, N: 300}, Spent: true}
	op.Amounts = []store.Amount{{Unit: "requests", N: -1}, {Unit: "usd", Limit: "day", N: 7}}
	op.Result.State = store.Unknown // not kept
	b := AppendApply(nil, 5, []store.Op{op})
	payload := []byte{
		KindApply, 10, 1,
		0x93, 0x41, // session, n, amounts, kind, spent
		1, 0xac, 2, // id
		5,                                               // two amounts, some for a single limit
		8, 'r', 'e', 'q', 'u', 'e', 's', 't', 's', 0, 1, // requests
		3, 'u', 's', 'd', 3, 'd', 'a', 'y', 14, // usd
		byte(store.OpClose),
	}
	want := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	want = binary.LittleEndian.AppendUint32(want, crc32.Checksum(append(want[:4:4], payload...), crc32.MakeTable(crc32.Castagnoli)))
	want = append(want, payload...)
	want = append(want, make([]byte, -len(want)&7)...)
	if !slices.Equal(b, want) {
		t.Errorf("got\n%s want\n%s", hex.Dump(b), hex.Dump(want))
	}
}

func TestACommonEntryIsSmall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		op   store.Op
		most int
	}{
		{"acquire", acquire(), 80},
		{"answer", answer(), 72},
		{"close", store.Op{Kind: store.OpClose, ID: answer().ID}, 40},
	} {
		if n := len(AppendApply(nil, now, []store.Op{test.op})); n > test.most {
			t.Errorf("%s: %d bytes, want at most %d", test.name, n, test.most)
		}
	}
}

// A caller that writes into a mapped file must get its own memory back, whatever its content.
func TestAppendWritesInPlace(t *testing.T) {
	ops, s := []store.Op{acquire(), answer(), heartbeat()}, spec()
	for name, app := range map[string]func([]byte) []byte{
		"apply":  func(b []byte) []byte { return AppendApply(b, now, ops) },
		"define": func(b []byte) []byte { return AppendDefine(b, now, &s, true) },
	} {
		want := app(nil)
		room := slices.Repeat([]byte{0xff}, len(want)+16)
		got := app(room[: 8 : 8+len(want)])
		if &got[0] != &room[0] || !slices.Equal(got[8:], want) {
			t.Errorf("%s: not in place", name)
		}
		if tail := room[8+len(want):]; !slices.Equal(tail, slices.Repeat([]byte{0xff}, 8)) {
			t.Errorf("%s: wrote beyond its room: %x", name, tail)
		}
		if n := testing.AllocsPerRun(100, func() { app(room[:0]) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Bound(ops); BoundSpec(&s) }); n != 0 {
		t.Errorf("bounds: %v allocations", n)
	}
}

func TestReplayKeepsItsMemory(t *testing.T) {
	journal := AppendApply(nil, now, []store.Op{acquire(), answer()})
	other := acquire()
	other.Agent, other.Model = "agent-0043", "model"
	journal = AppendApply(journal, now, []store.Op{other, heartbeat(), answer()})
	var e Entry
	if n := testing.AllocsPerRun(100, func() {
		for rest := journal; len(rest) > 0; {
			n, err := e.Next(rest)
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Ops must stay valid while the arrays behind them grow.
func TestOpsOfOneEntryShareNothing(t *testing.T) {
	t.Parallel()
	ops := make([]store.Op, 100)
	for i := range ops {
		ops[i] = heartbeat()
		ops[i].WaitsFor = []string{strings.Repeat("x", i), "b"}
		ops[i].Observed = []store.Observed{{Limit: "a", Size: -1}, {Remaining: int64(-i)}}
		ops[i].Amounts = []store.Amount{{Unit: "u", N: int64(i)}, {Unit: "v", Limit: "a"}}
	}
	var e Entry
	if _, err := e.Next(AppendApply(nil, now, ops)); err != nil || !reflect.DeepEqual(e.Ops, ops) {
		t.Fatalf("%v %+v", err, e.Ops)
	}
	_ = append(e.Ops[0].WaitsFor, "other")
	_ = append(e.Ops[0].Observed, store.Observed{Limit: "other"})
	_ = append(e.Ops[0].Amounts, store.Amount{Unit: "other"})
	if !reflect.DeepEqual(e.Ops, ops) {
		t.Error("appending to what one op has changed another")
	}
}

func TestWhatWaitsForTooManyIsRefusedAgain(t *testing.T) {
	t.Parallel()
	op := heartbeat()
	op.WaitsFor = slices.Repeat([]string{"agent"}, store.MaxWaits*1000)
	var e Entry
	if _, err := e.Next(AppendApply(nil, now, []store.Op{op})); err != nil {
		t.Fatal(err)
	}
	if n := len(e.Ops[0].WaitsFor); n <= store.MaxWaits {
		t.Errorf("%d names: would be let in", n)
	}
}

func TestTooManyAmountsAreRefusedAgain(t *testing.T) {
	t.Parallel()
	op := acquire()
	op.Amounts = make([]store.Amount, 100*store.MaxAmounts)
	var e Entry
	if _, err := e.Next(AppendApply(nil, now, []store.Op{op})); err != nil {
		t.Fatal(err)
	}
	if n := len(e.Ops[0].Amounts); n <= store.MaxAmounts {
		t.Errorf("%d amounts: would be let in", n)
	}
}

func TestLongTextIsKeptWhole(t *testing.T) {
	t.Parallel()
	op := acquire()
	op.Agent, op.Cause = strings.Repeat("a", store.MaxName+1), strings.Repeat("why ", 1<<18)
	var e Entry
	if _, err := e.Next(AppendApply(nil, now, []store.Op{op})); err != nil || !reflect.DeepEqual(e.Ops, []store.Op{op}) {
		t.Error(err)
	}
	for _, s := range e.seen {
		if len(s) > store.MaxName {
			t.Errorf("%d bytes of text are kept", len(s))
		}
	}
}

func TestWhatNoEntryHoldsIsNotWritten(t *testing.T) {
	t.Parallel()
	statements := answer()
	statements.Observed = make([]store.Observed, MaxObserved+1)
	limits, classes := spec(), spec()
	limits.Limits = make([]store.Limit, store.MaxLimits+1)
	classes.Classes = make([]store.Class, store.MaxClasses+1)
	for name, ops := range map[string][]store.Op{
		"ops":        make([]store.Op, store.MaxBatch+1),
		"statements": {acquire(), statements},
	} {
		if b := AppendApply([]byte("x"), now, ops); string(b) != "x" || Bound(ops) <= MaxEntry {
			t.Errorf("%s: %d bytes, bound %d", name, len(b), Bound(ops))
		}
	}
	for name, s := range map[string]store.Spec{"limits": limits, "classes": classes} {
		if b := AppendDefine([]byte("x"), now, &s, true); string(b) != "x" || BoundSpec(&s) <= MaxEntry {
			t.Errorf("%s: %d bytes, bound %d", name, len(b), BoundSpec(&s))
		}
		if b := AppendSpec([]byte("x"), &s); string(b) != "x" {
			t.Errorf("%s: %d bytes", name, len(b))
		}
	}
	text := strings.Repeat("x", 1<<20)
	many := make([]store.Op, store.MaxBatch)
	for i := range many {
		many[i].Cause = text // 4 GiB, of which only the bound is looked at here
	}
	if n := Bound(many); n <= MaxEntry || n > math.MaxInt32 {
		t.Errorf("bound %d", n)
	}
}

func TestTheLargestIsRead(t *testing.T) {
	t.Parallel()
	op := answer()
	op.Observed = make([]store.Observed, MaxObserved)
	ops := make([]store.Op, store.MaxBatch)
	ops[store.MaxBatch-1] = op
	var e Entry
	if _, err := e.Next(AppendApply(nil, now, ops)); err != nil || !reflect.DeepEqual(e.Ops, ops) {
		t.Error(err)
	}
}

func TestEveryFlippedBitOfAnEntryIsNoticed(t *testing.T) {
	t.Parallel()
	b := AppendApply(nil, now, []store.Op{acquire(), answer(), heartbeat()})
	whole := len(b)
	b = AppendApply(b, now, []store.Op{acquire()})
	var e Entry
	for i := range whole * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := e.Next(b); err != ErrCorrupt && err != ErrShort {
			t.Errorf("bit %d: %v", i, err)
		}
		if e.Kind != 0 || len(e.Ops) != 0 {
			t.Errorf("bit %d: something was left of it", i)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestWrongContentsWithARightSum(t *testing.T) {
	t.Parallel()
	uv := func(head []byte, more ...uint64) []byte {
		b := slices.Clone(head)
		for _, v := range more {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	apply := []byte{KindApply, 0}
	s := spec()
	good := append([]byte{KindDefine, 0, 0}, AppendSpec(nil, &s)...)
	newer := slices.Clone(good)
	newer[3]++
	for name, payload := range map[string][]byte{
		"no time":              {KindApply},
		"time without end":     append([]byte{KindApply}, slices.Repeat([]byte{0xff}, 11)...),
		"kind 0":               {0, 0, 0},
		"unknown kind":         {KindApply + 1, 0, 0},
		"of an earlier layout": {1, 0, 0},
		"no count":             apply,
		"ops that are not":     uv(apply, 2, 0),
		"too many ops":         append(uv(apply, store.MaxBatch+1), make([]byte, store.MaxBatch+1)...),
		"more behind":          uv(apply, 1, 0, 0),
		"unknown field":        uv(apply, 1, uint64(endOfOp)),
		"unknown high field":   uv(apply, 1, 1<<40),
		"text beyond the end":  uv(apply, 1, uint64(hasAgent), math.MaxUint64),
		"too many amounts":     append(uv(apply, 1, uint64(hasAmounts), (maxAmounts+1)<<1), make([]byte, amountLeast*(maxAmounts+1))...),
		"missing amounts":      uv(apply, 1, uint64(hasAmounts), 2<<1, 0, 1),
		"amount without limit": uv(apply, 1, uint64(hasAmounts), 1<<1|1, 0, 1),
		"statements":           uv(apply, 1, uint64(hasObserved), MaxObserved, 0, 0, 0, 0, 0),
		"too many statements":  append(uv(apply, 1, uint64(hasObserved), MaxObserved+1), make([]byte, 5*MaxObserved+5)...),
		"too many names":       append(uv(apply, 1, uint64(hasWaitsFor), maxWaits+1), make([]byte, maxWaits+1)...),
		"strange alone":        append([]byte{KindDefine, 0, 2}, good[3:]...),
		"newer layout of spec": newer,
		"spec cut":             good[:len(good)-1],
	} {
		var e Entry
		if n, err := e.Next(framed(payload)); n != 0 || err != ErrCorrupt {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if e.Kind != 0 || len(e.Ops) != 0 || e.Spec.Name != "" {
			t.Errorf("%s: something was left of it", name)
		}
		if cap(e.Ops) > len(payload) || cap(e.observed)*observedLeast > 2*len(payload)+64 || cap(e.waits) > 2*len(payload)+8 || cap(e.amounts)*amountLeast > 2*len(payload)+16 {
			t.Errorf("%s: room for %d ops, %d statements, %d names", name, cap(e.Ops), cap(e.observed), cap(e.waits))
		}
	}
}

func TestWrongSpecs(t *testing.T) {
	t.Parallel()
	empty := AppendSpec(nil, &store.Spec{})
	limits, classes := len(empty)-2, len(empty)-1
	for name, change := range map[string]func(b []byte) []byte{
		"flags":            func(b []byte) []byte { b[1] = specFlags + 1; return b },
		"too many limits":  func(b []byte) []byte { b[limits] = store.MaxLimits + 1; return append(b, make([]byte, 999)...) },
		"no limit":         func(b []byte) []byte { b[limits] = 1; return b },
		"flags of a limit": func(b []byte) []byte { b[limits], b[limits+1] = 1, limitFlags+1; return append(b, make([]byte, 11)...) },
		"too many classes": func(b []byte) []byte {
			b[classes] = store.MaxClasses + 1
			return append(b, make([]byte, 2*store.MaxClasses+2)...)
		},
		"no class": func(b []byte) []byte { b[classes] = 1; return b },
	} {
		if s, err := DecodeSpec(change(slices.Clone(empty))); err != ErrCorrupt || !reflect.DeepEqual(s, store.Spec{}) {
			t.Errorf("%s: %v %+v", name, err, s)
		}
	}
	if s, err := DecodeSpec(empty); err != nil || !reflect.DeepEqual(s, store.Spec{}) {
		t.Errorf("empty: %v %+v", err, s)
	}
}

func TestAnImpossibleLengthIsCorrupt(t *testing.T) {
	t.Parallel()
	b := binary.LittleEndian.AppendUint32(nil, maxPayload+1)
	var e Entry
	if _, err := e.Next(append(b, make([]byte, 12)...)); err != ErrCorrupt {
		t.Error(err)
	}
}
