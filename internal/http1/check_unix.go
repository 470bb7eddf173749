//go:build unix

package http1

import (
	"net"
	"syscall"
)

// canCheck tells that an idle connection can be asked whether the server has closed it.
const canCheck = true

// check asks a connection whether something is there to be read: an end, or what nobody asked for.
type check struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	ok   bool
}

func (k *check) init(c net.Conn) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	k.raw = raw
	var one [1]byte
	k.look = func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), one[:])
		k.ok = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}
}

// quiet reports that the connection is open and has nothing to say. One that cannot be asked is not.
func (k *check) quiet() bool {
	if k.raw == nil {
		return false
	}
	k.ok = false
	return k.raw.Read(k.look) == nil && k.ok
}
