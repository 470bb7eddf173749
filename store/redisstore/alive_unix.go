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

// To Redis, a process that was killed and one that is cut off are alike: both are silent. On its own machine they are not: the kernel
// frees the locks of a process that has died, and of no other. So every process that stays holds a lock on a file of
// its own for each pool, and the others on the machine look for files whose lock is free.

// maxLooked bounds how many files are looked at in a second, and maxListed how many are listed.
const (
	maxLooked = 64
	maxListed = 4096
)

// rollDir is where the processes of this machine have their files for the pool, "" if there is no such place. Machines may share a
// home directory, and not all file systems have locks that hold on other machines: each machine has a directory of its own, and
// since each start.
func (st *state) rollDir() string {
	boot := bootID()
	if st.store.stateDir == "" || st.store.fixed || boot == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(boot + "\x00" + st.store.address + "\x00" + st.key))
	return filepath.Join(st.store.stateDir, "members", hex.EncodeToString(sum[:12]))
}

// every reports whether a rule holds for the directory of a pool's processes, and for those it is in.
func (st *state) every(dir string, rule func(dir string) error) bool {
	return rule(st.store.stateDir) == nil && rule(filepath.Dir(dir)) == nil && rule(dir) == nil
}

// enrol makes the file of this process. It is a help: if it cannot be made, silence has to do. The state is locked.
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
	if err == nil && !isFree(path) { // else locks mean nothing here
		_, err = fmt.Fprintln(f, os.Getpid()) // whoever finds it empty knows that the lock is still to come
		if err == nil {
			st.enrolled = f
			return
		}
	}
	_ = os.Remove(path)
	_ = f.Close()
}

// isFree reports whether the lock of a file can be had.
func isFree(path string) bool {
	f := lockFree(path)
	if f != nil {
		_ = f.Close()
	}
	return f != nil
}

// lockFree opens a file and locks it if nobody has the lock. Otherwise it returns nil.
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

// strike removes the file of this process. With killed it stays as a process that was killed would leave it.
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

// enrolAgain makes the file of this process anew if it was removed, with the state directory say.
func (st *state) enrolAgain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if f := st.enrolled; f != nil && statedir.Gone(f, f.Name()) {
		_ = f.Close()
		st.enrolled = nil
		st.enrol()
	}
}

// bury looks for processes of this machine that have died, and tells the pool of them.
func (st *state) bury() {
	st.enrolAgain()
	dir := st.rollDir()
	if dir == "" || st.isLost.Load() || !st.every(dir, statedir.NoLink) {
		return
	}
	d, err := os.Open(dir)
	if err != nil {
		return // nobody was here
	}
	names, _ := d.Readdirnames(maxListed)
	_ = d.Close()
	if len(names) == 0 {
		return
	}
	first := rand.IntN(len(names)) //nolint:gosec // many look: not all at the same
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

// buryOne tells the pool that a process has died, if it has. It reports false if the pool cannot be told.
func (st *state) buryOne(path string, process uint64) bool {
	f := lockFree(path)
	if f == nil {
		return true
	}
	defer f.Close() //nolint:errcheck // it was only read
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
