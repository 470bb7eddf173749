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
	p, err := New(classesSpec(hourly(10)), now)
	if err != nil {
		t.Fatal(err)
	}
	ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 7}, Agent: "a", TTL: time.Minute, Wait: -1}}
	p.Apply(now, ops)
	p.Apply(now, []store.Op{{Kind: store.OpClose, ID: ops[0].Result.ID}})
	beat := []store.Op{{Kind: store.OpPoll, ID: store.ID{Session: 7}, Alive: time.Second}}
	if p.Apply(now, beat); beat[0].Result.State != store.Ended {
		t.Errorf("the heartbeat of a session without tickets: %v", beat[0].Result.State)
	}
	now = now.Add(sessionMemory * time.Microsecond)
	if p.Apply(now, beat); beat[0].Result.State != store.Unknown {
		t.Errorf("the heartbeat of a forgotten session: %v", beat[0].Result.State)
	}
}
