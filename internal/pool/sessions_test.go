package pool

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Whether a heartbeat found a session that was unused for long depended on whether a sweep had come by, so stores
// answered differently.
func TestAForgottenSessionIsUnknownBeforeItIsSwept(t *testing.T) {
	now := store.Time(1_700_000_000_000_000)
	p, err := New(classesSpec(hourly(1000)), now)
	if err != nil {
		t.Fatal(err)
	}
	const most = 100 // so that the sweep of one step does not see them all
	for id := range uint64(most) {
		ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: id + 1}, Agent: "a", TTL: time.Minute, Wait: -1}}
		p.Apply(now, ops)
		p.Apply(now, []store.Op{{Kind: store.OpClose, ID: ops[0].Result.ID}})
	}
	beat := func(id uint64) store.State {
		ops := []store.Op{{Kind: store.OpPoll, ID: store.ID{Session: id}, Alive: time.Second}}
		p.Apply(now, ops)
		return ops[0].Result.State
	}
	if state := beat(most); state != store.Ended {
		t.Errorf("the heartbeat of a session without tickets: %v", state)
	}
	now = now.Add(sessionMemory * time.Microsecond)
	for id := range uint64(most) {
		if state := beat(id + 1); state != store.Unknown {
			t.Fatalf("the heartbeat of the forgotten session %d: %v", id+1, state)
		}
	}
}
