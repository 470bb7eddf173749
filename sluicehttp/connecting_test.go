package sluicehttp

import (
	"testing"
	"testing/synctest"
	"time"
)

// One timer serves all connecting attempts, and each is reported after its own time.
func TestAttemptsThatConnectShareATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c connecting
		began := time.Now()
		var list [4]attempt
		var told [4]time.Duration
		for i := range list {
			a := &list[i]
			a.over = true // so that no other request is told
			c.add(a, time.Now())
			time.Sleep(100 * time.Millisecond)
		}
		c.remove(&list[0])
		c.remove(&list[2])
		c.remove(&list[2])
		for time.Since(began) < 2*time.Second {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			c.mu.Lock()
			for i := range list {
				if !list[i].waits && told[i] == 0 {
					told[i] = time.Since(began)
				}
			}
			c.mu.Unlock()
		}
		if told[1] != hangAfter+100*time.Millisecond || told[3] != hangAfter+300*time.Millisecond {
			t.Errorf("told after %v and %v", told[1], told[3])
		}
		if c.first != nil || c.last != nil || c.armed {
			t.Errorf("%+v is left", &c)
		}
	})
}

func TestConnectedAttemptsAreNotWatched(t *testing.T) {
	a := &attempt{f: &flight{t: &Transport{}}}
	l := &a.f.t.connecting
	l.armed = true // no timer in this test
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchConnecting()
	if l.first != a {
		t.Error("an attempt that connects is not watched")
	}
	a.unwatch()
	if l.first != nil || l.last != nil {
		t.Error("an attempt is watched that has its connection")
	}
}
