//go:build linux || darwin

package redisstore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// Redis cannot tell a process that was killed from one that is cut off: both are silent. Other processes on the same
// machine can: the kernel frees a process's file locks when it dies. So every process that stays locks a file of its own
// for each pool. The others on the machine look for files whose lock is free, and report those processes as gone.

// maxLooked bounds how many files a process checks per second, and maxListed how many it lists.
const (
	maxLooked = 64
	maxListed = 4096
)

// rollDir returns the directory with the lock files of this machine's processes for the pool, or "" if there is none. Each
// boot of each machine has a directory of its own: machines may share a home directory, and not all file systems enforce
// locks between machines.
func (st *state) rollDir() string {
	boot := bootID()
	if st.store.stateDir == "" || st.store.fixed || boot == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(boot + "\x00" + st.store.address + "\x00" + st.key))
	return filepath.Join(st.store.stateDir, "members", hex.EncodeToString(sum[:12]))
}

// every reports whether rule holds for dir and for the two directories above it that belong to Sluice.
func (st *state) every(dir string, rule func(dir string) error) bool {
	return rule(st.store.stateDir) == nil && rule(filepath.Dir(dir)) == nil && rule(dir) == nil
}

// enrol creates and locks the file of this process. Failures are ignored: other processes then wait for the silence
// timeout. The caller holds st.mu.
func (st *state) enrol() {
	dir := st.rollDir()
	if st.enrolled != nil || dir == "" || !st.every(dir, statedir.MakeInside) {
		return
	}
	path := filepath.Join(dir, strconv.FormatUint(st.store.process, 16))
	f, err := statedir.Open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	if again := lockFree(path); again != nil { // locked twice: this file system has no working locks
		_ = again.Close()
	} else if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid()) // an empty file tells readers that it is not locked yet
		if err == nil {
			st.enrolled = f
			return
		}
	}
	_ = os.Remove(path)
	_ = f.Close()
}

// lockFree opens a file and locks it if its lock is free. Otherwise it returns nil.
func lockFree(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		_ = f.Close()
		return nil
	}
	return f
}

// strike unlocks and removes the file of this process. With killed it leaves the file, as a killed process would.
func (st *state) strike(killed bool) {
	st.mu.Lock()
	f := st.enrolled
	st.enrolled = nil
	st.mu.Unlock()
	if f == nil {
		return
	}
	if !killed {
		_ = os.Remove(f.Name())
	}
	_ = f.Close()
}

// enrolAgain creates the file of this process again if it was removed, for example with the state directory.
func (st *state) enrolAgain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if f := st.enrolled; f != nil && statedir.Gone(f, f.Name()) {
		_ = f.Close()
		st.enrolled = nil
		st.enrol()
	}
}

// bury tells the pool which processes of this machine have died.
func (st *state) bury() {
	st.enrolAgain()
	dir := st.rollDir()
	if dir == "" || st.isLost.Load() || !st.every(dir, statedir.NoLink) {
		return
	}
	d, err := os.Open(dir)
	if err != nil {
		return // no process has a file here
	}
	names, _ := d.Readdirnames(maxListed)
	_ = d.Close()
	if len(names) == 0 {
		return
	}
	first := rand.IntN(len(names)) //nolint:gosec // spreads the processes that look over the files
	for i := range min(len(names), maxLooked) {
		name := names[(first+i)%len(names)]
		process, err := strconv.ParseUint(name, 16, 37)
		if err != nil || process == st.store.process || strings.ToLower(name) != name {
			continue
		}
		if !st.buryOne(filepath.Join(dir, name), process) {
			return
		}
	}
}

// buryOne tells the pool that a process has died if its lock is free. It returns false if the pool cannot be told.
func (st *state) buryOne(path string, process uint64) bool {
	f := lockFree(path)
	if f == nil {
		return true
	}
	defer f.Close() //nolint:errcheck // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return true
	}
	ops := []store.Op{{Kind: store.OpGone, ID: store.ID{Session: process << 16, N: 1 << 16}}}
	if err := st.apply(st.life, ops); err != nil || ops[0].Result.State != store.Ended {
		return false
	}
	_ = os.Remove(path)
	return true
}
