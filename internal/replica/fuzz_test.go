package replica_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/storetest"
)

// usualEntries returns the entries of a few tickets of two processes.
func usualEntries(tb testing.TB) []sharedlog.Entry {
	f := newFleet(tb, 2)
	f.tickets(45)
	f.append(1, replica.Request{Kind: replica.Close, Session: replica.SessionOf(f.ids[1], 1)})
	f.append(1, replica.Request{Kind: replica.Leave})
	return f.entries
}

// FuzzApply applies any entry to a replica that has tickets. Whatever it is, the replica works afterwards, and one that was
// restored from a snapshot before does the same.
func FuzzApply(f *testing.F) {
	entries := usualEntries(f)
	for _, e := range entries {
		f.Add(e.Body, e.Body, int64(0))
	}
	var last []byte
	for _, ops := range [][]store.Op{
		{{Kind: store.OpAnswer, ID: store.ID{N: 1}, Age: store.MaxAge}, {Kind: store.OpPause, RetryAfter: 1}, {Kind: store.OpTouch, TTL: 5, Share: 3, Until: storetest.Start}},
		{{Kind: store.OpHeartbeat, Agent: "a", Machine: "m", User: "u", WaitsFor: []string{"b"}, Slots: store.Slots{Max: 1, TTL: 5}}},
		{{Kind: store.OpGone, ID: store.ID{Session: 5 << 24, N: 1 << 60}}, {Kind: store.OpForget}, {Kind: store.OpLaunch, Wait: 77}},
	} {
		fl := newFleet(f, 1)
		fl.append(0, replica.Request{Session: replica.SessionOf(fl.ids[0], 2), Ops: ops})
		body := fl.entries[len(fl.entries)-1].Body
		f.Add(body, last, int64(1<<40))
		last = body
	}
	f.Fuzz(func(t *testing.T, first, second []byte, after int64) {
		r := replica.New()
		at := sharedlog.Position{}
		stamp := storetest.Start
		apply := func(r *replica.Replica, body []byte) replica.Applied {
			did := r.Apply(sharedlog.Entry{Body: body, Stamp: stamp, At: at})
			if errors.Is(r.Broken(), replica.ErrPoisoned) {
				t.Fatal(r.Broken())
			}
			return did
		}
		for _, e := range entries[:min(len(first), len(entries))] {
			at.Offset += 20
			stamp = e.Stamp
			apply(r, e.Body)
		}
		twin, err := replica.Restore(r.AppendSnapshot(nil))
		if err != nil {
			t.Fatal(err)
		}
		stamp += store.Time(after & (1<<56 - 1))
		for _, body := range [][]byte{first, second, second, entries[0].Body, nil} {
			at.Offset += 20
			stamp++
			a, b := apply(r, body), apply(twin, body)
			if a.Process != b.Process || len(a.Ops) != len(b.Ops) || r.Hash() != twin.Hash() {
				t.Fatalf("%+v, and after a snapshot %+v", a, b)
			}
		}
		mine := r.AppendSnapshot(nil)
		if r.Broken() != nil { // a process of a later release has joined
			if _, err := replica.Restore(mine); !errors.Is(err, replica.ErrRules) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(mine, twin.AppendSnapshot(nil)) {
			t.Fatal("snapshots differ")
		}
		again, err := replica.Restore(mine)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.AppendSnapshot(nil), mine) {
			t.Fatal("a restored replica has another snapshot")
		}
	})
}

// FuzzRestore restores any bytes: an error, or a replica that works.
func FuzzRestore(f *testing.F) {
	fl := newFleet(f, 3)
	f.Add(replica.Seal(fl.own.AppendSnapshot(nil)))
	fl.tickets(10)
	f.Add(replica.Seal(fl.own.AppendSnapshot(nil)))
	f.Add(replica.Seal(replica.New().AppendSnapshot(nil)))
	f.Fuzz(func(t *testing.T, snapshot []byte) {
		r, err := replica.Restore(replica.Seal(snapshot))
		if err != nil {
			return
		}
		twin, err := replica.Restore(r.AppendSnapshot(nil))
		if err != nil {
			t.Fatal(err)
		}
		w := replica.NewWriter(replica.Identity{Process: replica.ProcessID(1 << 60), Machine: 1})
		spec := usualSpec()
		session := replica.SessionOf(replica.ProcessID(1<<60), 1)
		for i, q := range []replica.Request{
			{Kind: replica.Open, Session: session, Spec: &spec},
			{Session: session, Ops: []store.Op{{Kind: store.OpAcquire, Agent: "a", Wait: -1, TTL: 1e9}}},
			{Kind: replica.Leave},
		} {
			body, err := w.Append(nil, r, 0, []replica.Request{q})
			if err != nil {
				t.Fatal(err)
			}
			e := sharedlog.Entry{Body: body, Stamp: r.Now() + 1e6, At: sharedlog.Position{Offset: int64(i) * 20}}
			r.Apply(e)
			twin.Apply(e)
			if r.Broken() != nil || twin.Broken() != nil {
				t.Fatal(r.Broken(), twin.Broken())
			}
		}
		if !bytes.Equal(r.AppendSnapshot(nil), twin.AppendSnapshot(nil)) {
			t.Fatal("snapshots differ")
		}
	})
}
