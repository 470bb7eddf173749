//go:build unix

package redisrun

import (
	"errors"
	"strings"
	"testing"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	s := NewSentinel(t, "requirepass hush", "min-replicas-to-write 1")
	if want := "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/mymaster"; s.URL() != want || len(s.Addrs()) != 3 {
		t.Errorf("URL %s", s.URL())
	}
	first := s.Master()
	if first == nil || first != s.Nodes()[0] {
		t.Fatalf("the master at the start is %v", first)
	}
	do(t, first, "SET", "kept", "1")
	do(t, first, "WAIT", "1", "5000")

	// While both live.
	if err := s.Failover(); err != nil {
		t.Fatal(err)
	}
	second := s.Master()
	if second == first {
		t.Fatal("the failover changed nothing")
	}
	if got := do(t, second, "GET", "kept"); got != "1" {
		t.Errorf("after the failover: %q", got)
	}
	if err := s.WaitReplica(); err != nil {
		t.Fatal(err)
	}
	do(t, second, "SET", "new", "1")
	do(t, second, "WAIT", "1", "5000")
	refused(t, first, "READONLY", "SET", "k", "1")

	// The master dies, and comes back as the replica; a sentinel is restarted too.
	if err := second.Kill(); err != nil {
		t.Fatal(err)
	}
	third, err := s.WaitMaster(second)
	if err != nil || third != first || s.Master() != first {
		t.Fatalf("after the master died: %v, %v", third, err)
	}
	refused(t, third, "NOREPLICAS", "SET", "k", "1")
	if err := s.Sentinels()[0].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := second.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReplica(); err != nil {
		t.Fatal(err)
	}
	if got := do(t, second, "GET", "new"); got != "1" {
		t.Errorf("after the restart: %q", got)
	}

	pids := append(pidsOf(s.Nodes()), pidsOf(s.Sentinels())...)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	allGone(t, pids)
	if s.Master() != nil {
		t.Error("a master after all have stopped")
	}
	_, err = s.WaitMaster(nil)
	for what, err := range map[string]error{"WaitMaster": err, "WaitReplica": s.WaitReplica(), "Failover": s.Failover()} {
		if !errors.Is(err, errNoSentinel) {
			t.Errorf("%s after all have stopped: %v", what, err)
		}
	}
}
