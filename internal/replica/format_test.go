package replica

import (
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// The bytes of entries and snapshots are the same on every machine, and those that an older release misreads have another
// version. If this test fails, raise entryVersion or snapshotVersion, unless the format was never released.
func TestFormat(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	b.catchUp()
	id := b.ask(0).ID
	a.catchUp()
	a.op(store.Op{
		Kind: store.OpAcquire, Agent: "a", User: "u", Model: "m", Tool: "t", Key: "k", Class: 0, Retry: true, Wait: 1234567 * time.Nanosecond,
		Alive: time.Second, TTL: time.Minute + 1, Tie: store.TieGone, Amounts: []store.Amount{{Unit: "requests", N: 1}, {Limit: "places", N: 2}},
	})
	a.op(store.Op{
		Kind: store.OpAnswer, ID: id, Verdict: store.VerdictThrottled, RetryAfter: time.Second, Scope: store.PerModel, Model: "m", Cause: "status 429",
		Observed: []store.Observed{{Limit: "places", Size: 5, Remaining: -1, ResetIn: time.Second, Slop: 1, Whole: 6}},
	})
	a.op(store.Op{Kind: store.OpTouch, TTL: time.Second, Share: 3, Until: store.Time(w.now) + sec})
	a.op(store.Op{Kind: store.OpHeartbeat, Agent: "a", Machine: "h", WaitsFor: []string{"b", "a"}, Slots: store.Slots{Max: 3, TTL: time.Hour}})
	a.op(store.Op{Kind: store.OpClose, ID: id, Rejected: 404, Spent: true, Age: 150 * time.Millisecond})
	w.pass(2*time.Second, a, b)
	b.do(Request{Kind: Close, Session: b.session(1)}, Request{Kind: Leave})
	a.catchUp()
	var all []byte
	for _, e := range w.log {
		all = append(all, e.Body...)
	}
	if got, want := fmt.Sprintf("%d bytes %08x", len(all), crc32.ChecksumIEEE(all)), "497 bytes f0d11385"; got != want {
		t.Errorf("entries: %s, want %s", got, want)
	}
	snapshot := a.replica.AppendSnapshot(nil)
	snapshot = snapshot[:len(snapshot)-len(a.replica.Pool().AppendState(nil))-4] // the pool's state has a version of its own
	if got, want := fmt.Sprintf("%d bytes %08x", len(snapshot), crc32.ChecksumIEEE(snapshot)), "412 bytes 1ce37c2a"; got != want {
		t.Errorf("snapshot: %s, want %s", got, want)
	}
}

func TestAFullPoolTakesNoMoreProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := New()
	for n := range uint64(store.MaxMembers + 1) {
		writer := NewWriter(Identity{Process: ProcessID((n + 1) << 40), Machine: 1})
		body, err := writer.Append(nil, r, time.Hour, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.add(body)
		did := r.Apply(w.log[n])
		if full := n == store.MaxMembers; full != (did.Err != nil) {
			t.Fatalf("process %d: %v", n+1, did.Err)
		}
	}
	if r.Members() != store.MaxMembers {
		t.Error(r.Members())
	}
}
