//go:build unix

package redisrun

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	c := NewCluster(t)
	if want := "redis+cluster://" + strings.Join(c.Addrs(), ","); c.URL() != want || len(c.Nodes()) != 3 {
		t.Errorf("URL %s, %d nodes", c.URL(), len(c.Nodes()))
	}
	slot, err := c.Slot("{pool}a")
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.Owner(slot)
	if err != nil {
		t.Fatal(err)
	}
	to := (from + 1) % 3
	owner, other := c.Nodes()[from], c.Nodes()[to]
	moved := func(s *Server, to *Server) {
		t.Helper()
		refused(t, s, fmt.Sprintf("MOVED %d %s", slot, to.Addr()), "GET", "{pool}a")
	}
	do(t, owner, "SET", "{pool}a", "1")
	do(t, owner, "SET", "{pool}b", "2")
	moved(other, owner)

	m, err := c.BeginMove(slot, to)
	if err != nil {
		t.Fatal(err)
	}
	if got := do(t, owner, "GET", "{pool}a"); got != "1" {
		t.Errorf("before a key has moved: %q", got)
	}
	refused(t, owner, "ASK", "GET", "{pool}c")
	if n, err := m.Keys(1); n != 1 || err != nil {
		t.Fatalf("%d keys moved: %v", n, err)
	}
	refused(t, owner, "TRYAGAIN", "MGET", "{pool}a", "{pool}b")
	if err := m.Finish(); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Nodes() {
		if s != other {
			moved(s, other)
		}
	}
	if got := do(t, other, "MGET", "{pool}a", "{pool}b"); got != "1\n2" {
		t.Errorf("after the move: %q", got)
	}

	if err := c.MoveSlot(slot, to); err != nil {
		t.Errorf("moved to where it is: %v", err)
	}
	for _, bad := range [][2]int{{slot, 3}, {slot, -1}, {-1, 0}, {slots, 0}} {
		if err := c.MoveSlot(bad[0], bad[1]); err == nil {
			t.Errorf("slot %d moved to node %d", bad[0], bad[1])
		}
	}

	// A node that was killed comes back as itself.
	if err := other.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := other.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitOK(); err != nil {
		t.Fatal(err)
	}
	if owner, err := c.Owner(slot); owner != to || err != nil {
		t.Errorf("after a restart node %d has the slot, not %d: %v", owner, to, err)
	}

	pids := pidsOf(c.Nodes())
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	allGone(t, pids)
}

func TestMoveSlotWithManyKeysAndAPassword(t *testing.T) {
	t.Parallel()
	c, err := StartCluster(2, Options{Lines: []string{"requirepass hush"}})
	if err != nil {
		t.Fatal(err)
	}
	keep(t, c.Stop, c.Nodes()...)
	slot, err := c.Slot("{p}")
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.Owner(slot)
	if err != nil {
		t.Fatal(err)
	}
	set := []string{"MSET"}
	for i := range 250 {
		set = append(set, fmt.Sprintf("{p}%d\n", i), "v")
	}
	do(t, c.Nodes()[from], set...)
	if err := c.MoveSlot(slot, 1-from); err != nil {
		t.Fatal(err)
	}
	if got := do(t, c.Nodes()[1-from], "DBSIZE"); got != "250" {
		t.Errorf("%s keys arrived", got)
	}
}

func TestClusterOptions(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, mostNodes + 1} {
		if _, err := StartCluster(n, Options{}); err == nil {
			t.Errorf("a cluster of %d", n)
		}
	}
	if _, err := StartCluster(3, Options{Port: 12345}); err == nil {
		t.Error("three nodes on one port")
	}
	if _, err := StartSentinel(Options{Port: 12345}); err == nil {
		t.Error("five servers on one port")
	}
	if _, err := StartCluster(2, Options{Lines: []string{"no-such-directive 1"}}); err == nil {
		t.Error("a cluster with a bad line")
	}
}

// refused wants an error from the server that begins in a certain way.
func refused(tb testing.TB, s *Server, begin string, args ...string) {
	tb.Helper()
	_, err := s.Do(tb.Context(), args...)
	var reply ReplyError
	if !errors.As(err, &reply) || !strings.HasPrefix(string(reply), begin) {
		tb.Errorf("%s: %v, want %s", args[0], err, begin)
	}
}

func pidsOf(servers []*Server) []int {
	var pids []int
	for _, s := range servers {
		pids = append(pids, s.Pid())
	}
	return pids
}

func allGone(tb testing.TB, pids []int) {
	tb.Helper()
	for _, pid := range pids {
		if pid == 0 || !gone(pid) {
			tb.Errorf("the process %d was not ended", pid)
		}
	}
}
