package filestore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// bootMicros returns the time since boot, including sleep, in microseconds. It is the same in all time namespaces.
func bootMicros() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("filestore: the system has no boot-time clock: " + err.Error()) // Linux has it since 2.6.39
	}
	return (t.Nano() - namespaceAhead()) / 1000
}

// namespaceAhead is by how many nanoseconds the boot-time clock of this process's time namespace is ahead. It cannot
// change while the process runs.
var namespaceAhead = sync.OnceValue(func() int64 {
	own, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		return 0 // a kernel without time namespaces
	}
	// The offsets are those of the namespace of this process's children, which is the same unless it has just changed.
	if of, err := os.Readlink("/proc/self/ns/time_for_children"); err != nil || of != own {
		return 0
	}
	text, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return 0
	}
	return bootOffset(string(text))
})

// bootOffset reads the line "boottime SECONDS NANOSECONDS" of a time namespace's offsets.
func bootOffset(text string) int64 {
	for line := range strings.Lines(text) {
		var seconds, nanos int64
		if n, _ := fmt.Sscanf(line, "boottime %d %d", &seconds, &nanos); n == 2 {
			return seconds*1_000_000_000 + nanos
		}
	}
	return 0
}

func bootID() (id [16]byte, err error) { return readBootID("/proc/sys/kernel/random/boot_id") }

func readBootID(path string) (id [16]byte, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return id, fmt.Errorf("%w: %w", errBoot, err)
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("the kernel's boot id is %q", text)
	}
	return [16]byte(raw), nil
}

// flockNow takes the lock of an open file if it is free. It never blocks, so it skips the scheduler's bookkeeping.
func flockNow(fd, how int) error {
	for {
		_, _, errno := syscall.RawSyscall(syscall.SYS_FLOCK, uintptr(fd), uintptr(how|unix.LOCK_NB), 0)
		if errno == 0 {
			return nil
		}
		if errno != syscall.EINTR {
			return errno
		}
	}
}

func unlock(fd int) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_FLOCK, uintptr(fd), unix.LOCK_UN, 0) // unlocking an open file cannot fail
}

// allocate makes a file size bytes long and allocates its disk space.
func allocate(f *os.File, from, size int64) error {
	fd := int(f.Fd())
	for {
		err := unix.Fallocate(fd, 0, from, size-from)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			return fill(fd, from, size)
		}
		return err
	}
}

// networks lists file systems whose locks do not, or may not, reach other machines.
var networks = []int64{
	0x6969,     // NFS
	0x517b,     // SMB
	0xfe534d42, // SMB2
	0xff534d42, // CIFS
	0x5346414f, // AFS
	0x73757245, // Coda
	0x564c,     // NCP
	0x00c36400, // Ceph
	0x0bd00bd0, // Lustre
	0x01021997, // 9P
	0x786f4256, // VirtualBox shared folders
	0x7461636f, // OCFS2
	0x01161970, // GFS2
}

const fuse = 0x65735546

// onNetwork reports whether a path is on a network file system.
func onNetwork(path string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false, err
	}
	kind := int64(uint32(st.Type))
	if kind == fuse {
		return fuseOnNetwork(path), nil
	}
	return slices.Contains(networks, kind), nil
}

// fuseOnNetwork looks up the file system behind a FUSE mount, because many are local.
func fuseOnNetwork(path string) bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	longest, kind := -1, ""
	for line := range strings.Lines(string(mounts)) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 {
			continue
		}
		at := fields[4]
		under := path == at || strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/")
		if under && len(at) >= longest {
			longest, kind = len(at), strings.Fields(after + " ?")[0]
		}
	}
	for _, network := range []string{"sshfs", "glusterfs", "s3fs", "rclone", "gcsfuse", "davfs", "virtiofs", "cephfs", "juicefs", "nfs", "smb"} {
		if strings.Contains(kind, network) {
			return true
		}
	}
	return false
}
