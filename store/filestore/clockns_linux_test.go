package filestore_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

var _ = role("elsewhere", func(k task) {
	s, p := inChild(k.Dir, k.Spec)
	ops := []store.Op{ask("elsewhere", 0, time.Hour)}
	if err := p.Apply(context.Background(), ops); err != nil {
		giveUp("acquire: %v", err)
	}
	say("%v", ops[0].Result.State)
	if err := s.Close(); err != nil {
		giveUp("close: %v", err)
	}
})

// Containers can have boot-time clocks of their own, in a time namespace. One that was ten days ahead once moved the pool's
// time by ten days, and all charges were gone.
func TestAProcessInAnotherTimeNamespaceHasTheSameTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := specOf(store.Limit{Kind: store.Rolling, Size: 1, Window: time.Hour, Guard: store.GuardOff})
	_, p := opened(t, dir, spec)
	ops := []store.Op{ask("here", 0, time.Hour)}
	if err := p.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted {
		t.Fatal(ops[0].Result, err)
	}
	days := []string{"unshare", "--time", "--monotonic", "864000", "--boottime", "864000"}
	if err := exec.Command(days[0], append(days[1:], "true")...).Run(); err != nil {
		t.Logf("this system has no time namespaces, or does not let us: %v", err)
		days = nil
	}
	c := start(t, "elsewhere", task{Dir: dir, Spec: spec}, func(cmd *exec.Cmd) {
		if days != nil {
			path, err := exec.LookPath(days[0])
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args = append(days[:len(days):len(days)], append([]string{cmd.Path}, cmd.Args[1:]...)...)
			cmd.Path = path
		}
	})
	if said, want := c.next(), fmt.Sprint(store.Refused); said != want {
		t.Errorf("it is %s, want %s", said, want)
	}
}
