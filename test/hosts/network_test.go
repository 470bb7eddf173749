//go:build slow && linux

package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// prefix is the prefix of the names of all namespaces; the process id of the test follows.
const prefix = "sluicehosts-"

// network is two switches in their own namespace. Hosts reach each other on the inner one and the provider on the outer
// one. So a host that is cut off from the others still reaches the provider, which puts the limits at risk.
type network struct {
	testing.TB
	names string
}

// place is a network namespace.
type place struct {
	net  *network
	name string // such as h1
	ns   string // full name of the namespace
}

// ip runs the ip command.
func (n *network) ip(stdin string, args ...string) {
	n.Helper()
	cmd := exec.Command("ip", args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.Fatalf("ip %s: %v\n%s%s", strings.Join(args, " "), err, out, stdin)
	}
}

// newNetwork creates the switches. The end of the test removes all namespaces.
func newNetwork(t testing.TB) *network {
	t.Helper()
	n := &network{TB: t, names: prefix + strconv.Itoa(os.Getpid()) + "-"}
	removeLeftovers()
	t.Cleanup(func() { removeAll(n.names) })
	n.ip("", "netns", "add", n.names+"switch")
	n.ip("link add name inner type bridge\nlink add name outer type bridge\nlink set inner up\nlink set outer up\n", "-n", n.names+"switch", "-batch", "-")
	return n
}

// add creates a namespace with an address on each of the given switches.
func (n *network) add(name string, addresses map[string]string) *place {
	n.Helper()
	p := &place{net: n, name: name, ns: n.names + name}
	n.ip("", "netns", "add", p.ns)
	n.ip("link set lo up\n", "-n", p.ns, "-batch", "-")
	for sw, address := range addresses {
		port := sw + "-" + name
		n.ip("", "link", "add", port, "netns", n.names+"switch", "type", "veth", "peer", "name", sw, "netns", p.ns)
		n.ip(fmt.Sprintf("link set %[1]s master %[2]s\nlink set %[1]s up\n", port, sw), "-n", n.names+"switch", "-batch", "-")
		n.ip(fmt.Sprintf("address add %s/24 dev %[2]s\nlink set %[2]s up\n", address, sw), "-n", p.ns, "-batch", "-")
	}
	return p
}

// link disconnects a host from a switch, or connects it again. The host itself sees no error; its packets get lost.
func (p *place) link(sw string, up bool) {
	p.net.Helper()
	state := map[bool]string{true: "up", false: "down"}[up]
	p.net.ip("", "-n", p.net.names+"switch", "link", "set", sw+"-"+p.name, state)
}

// inside calls f on a thread in the namespace, with the host's name as the machine name. The thread ends with f,
// because it cannot be used elsewhere.
func (p *place) inside(f func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends
		failed <- func() error {
			fd, err := unix.Open(filepath.Join("/run/netns", p.ns), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd) //nolint:errcheck // it was only read
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWUTS); err != nil {
				return err
			}
			if err := unix.Sethostname([]byte(p.name)); err != nil {
				return err
			}
			return f()
		}()
	}()
	return <-failed
}

// dial connects from inside the namespace.
func (p *place) dial(ctx context.Context, _, address string) (conn net.Conn, err error) {
	err = p.inside(func() (err error) {
		var d net.Dialer
		conn, err = d.DialContext(ctx, "tcp4", address)
		return err
	})
	return conn, err
}

// removeAll removes the namespaces with this prefix. Their processes have ended.
func removeAll(names string) {
	found, _ := filepath.Glob("/run/netns/" + names + "*")
	for _, path := range found {
		_ = exec.Command("ip", "netns", "del", filepath.Base(path)).Run() // another run may have removed it first
	}
}

// removeLeftovers removes the namespaces of tests that were killed.
func removeLeftovers() {
	found, _ := filepath.Glob("/run/netns/" + prefix + "*")
	for _, path := range found {
		id, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
		if pid, err := strconv.Atoi(id); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			removeAll(prefix + id + "-")
		}
	}
}
