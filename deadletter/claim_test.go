package deadletter_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/deadletter"
)

func TestOneProcessAtATimeHasAnEntry(t *testing.T) {
	list := open(t)
	id := add(t, list, entry("true"))
	other := otherProcess(t, list.Dir(), id)
	if _, err := list.Claim(id); !errors.Is(err, deadletter.ErrClaimed) {
		t.Errorf("claimed twice: %v", err)
	}
	if err := list.Remove(id); !errors.Is(err, deadletter.ErrClaimed) {
		t.Errorf("removed while it was claimed: %v", err)
	}
	if e, err := list.Get(id); err != nil || e.ID != id {
		t.Errorf("it can be looked at: %v, %v", e, err)
	}
	// Who dies gives it back.
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	c, err := list.Claim(id)
	if err != nil {
		t.Fatal(err)
	}
	c.Release()
	c.Release()
}

func TestClaimedEntryIsUpdatedAndRemoved(t *testing.T) {
	list := open(t)
	id := add(t, list, entry("true"))
	c, err := list.Claim(id)
	if err != nil {
		t.Fatal(err)
	}
	e := c.Entry()
	e.Attempts, e.ID = 12, "somethingels"
	for i := range 100 {
		e.Waits = append(e.Waits, deadletter.Wait{Attempt: i})
	}
	if err := c.Update(e); err != nil {
		t.Fatal(err)
	}
	got, err := list.Get(id)
	if err != nil || got.Attempts != 12 || got.ID != id || len(got.Waits) != deadletter.MaxWaits || got.Waits[deadletter.MaxWaits-1].Attempt != 99 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := errors.Join(c.Remove(), c.Remove()); err != nil {
		t.Error(err)
	}
	c.Release()
	if _, err := list.Claim(id); !errors.Is(err, deadletter.ErrUnknown) {
		t.Errorf("it is still there: %v", err)
	}
	if files, _ := os.ReadDir(list.Dir()); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// Removing the lock file could let two processes in, one through the old file and one through the new one.
func TestClaimsNeverOverlap(t *testing.T) {
	list := open(t)
	id := add(t, list, entry("true"))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for done := 0; done < 25; {
				c, err := list.Claim(id)
				if errors.Is(err, deadletter.ErrClaimed) {
					runtime.Gosched()
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if !mu.TryLock() {
					t.Error("two have it")
				} else {
					runtime.Gosched()
					mu.Unlock()
				}
				c.Release()
				done++
			}
		})
	}
	wg.Wait()
}

func TestWhatTheDeadLeftIsSwept(t *testing.T) {
	list := open(t)
	id := add(t, list, entry("true"))
	old, fresh := filepath.Join(list.Dir(), ".tmp-0000000000aa"), filepath.Join(list.Dir(), ".tmp-0000000000bb")
	claim, other := filepath.Join(list.Dir(), "0000000000cc.claim"), filepath.Join(list.Dir(), "notes.claim")
	for _, name := range []string{old, fresh, claim, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	add(t, list, entry("true"))
	for name, want := range map[string]bool{old: false, fresh: true, claim: false, other: true, filepath.Join(list.Dir(), id+".json"): true} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s: there is %v, want %v", filepath.Base(name), err == nil, want)
		}
	}
}
