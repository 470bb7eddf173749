//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// The caller of a command that makes one request sends it when the command has ended. The lock once held up the end for
// seconds, while the time that the request had to arrive ran out.
func TestACommandWithItsGrantDoesNotWaitForTheLockToLeave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, p := opened(t, dir, wide(), filestore.WithPatience(time.Hour))
	one := wide()
	one.OneShot = true
	command, err := filestore.Open(dir, filestore.WithPatience(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	its, err := command.Pool(context.Background(), one)
	if err != nil {
		t.Fatal(err)
	}
	op := ask("script", 0, time.Hour)
	op.Spent = true
	ops := []store.Op{op}
	if err := its.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted {
		t.Fatal(ops[0].Result, err)
	}
	free := locked(t, s.StatePath("pool"))
	if err := errors.Join(its.Close(), command.Close()); err != nil { // with a patience of an hour
		t.Error(err)
	}
	free()
	ops = []store.Op{ask("next", 0, time.Hour)}
	if err := p.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted {
		t.Error(ops[0].Result, err)
	}
	if left, err := os.ReadDir(dir + "/pools/pool"); err != nil || len(left) > 5 {
		t.Errorf("%v, %v", left, err)
	}
}

// With two hundred scripts at a time, some once waited for five seconds while the lock went through the hands of others, and
// failed as if one process had held it all the time.
func TestALockThatGoesFromProcessToProcessIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, t.TempDir(), wide())
	free := locked(t, s.StatePath("pool"))
	defer free()
	f, err := os.OpenFile(s.StatePath("pool"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	const others = 50
	var looks int64
	err = filestore.WaitLock(f, 10*time.Millisecond, func() int64 {
		looks++
		return min(looks, others)
	})
	if err == nil || !strings.Contains(err.Error(), "process 50") || looks < others {
		t.Errorf("after %d looks: %v", looks, err)
	}
}
