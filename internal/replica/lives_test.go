package replica

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Any entry of a member is a sign of life, counted from when it was made, however late it arrives.
func TestAnEntryIsASignOfLifeOfTheTimeWhenItWasMade(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	a.writer.Alive = true
	if r := a.op(store.Op{Kind: store.OpTouch}); r.State != store.Granted || r.Share != 2 {
		t.Fatalf("%+v", r)
	}
	session, first := a.replica.Share(a.id)
	if session != a.session(1) || first.Share != 2 || !first.Settled {
		t.Fatalf("%d %+v", session, first)
	}
	w.pass(2*time.Second, b)
	made, reading := w.now, time.Duration(a.machine)*time.Hour+time.Duration(w.now-began)*time.Microsecond
	stuck := a.write()
	known := a.replica.HeardBy(a.id, reading)
	w.pass(7*time.Second, b)
	w.add(stuck)
	b.catchUp()
	_, m := b.replica.Share(a.id)
	if late := int64(m.Touched) - made; m.Touched > known || late < -10_000 || late > 100_000 {
		t.Errorf("it counts %d us after it was made; the process believes %d", late, int64(known)-made)
	}
	a.catchUp()
	restored, err := Restore(a.replica.AppendSnapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	a.replica = restored
	a.do() // in time
	if _, m := a.replica.Share(a.id); int64(m.Touched) < w.now-10_000 {
		t.Errorf("an entry in time counts from %d us before its arrival", w.now-int64(m.Touched))
	}
	a.writer.Alive = false
	_, before := a.replica.Share(a.id)
	w.pass(time.Second, b)
	a.do()
	if _, m := a.replica.Share(a.id); m != before {
		t.Errorf("an entry that is no sign of life counts: %+v", m)
	}
	a.do(Request{Kind: Close, Session: a.session(1)})
	if session, _ := a.replica.Share(a.id); session != 0 {
		t.Error("it has a share without a session")
	}
	b.catchUp()
	w.alike()
}
