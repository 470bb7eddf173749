package redisrun

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are drawn from [lowPort, highPort). That is below the range that systems use for outgoing connections, so
// the port of a stopped server stays free for its restart. Servers of a cluster also use port+busOffset, which is
// never in the range.
const (
	lowPort   = 10000
	highPort  = 20000
	busOffset = 10000
)

var errPortTaken = errors.New("the port is taken")

// ports are those that this process has handed out, also while their server is down.
var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// takePort reserves the given port, or a free one if it is 0. Another process may still take the port before the
// server does. Start then tries another.
func takePort(port int) (int, error) {
	ports.Lock()
	defer ports.Unlock()
	if port != 0 {
		if port < 0 || port > 65535-busOffset {
			return 0, fmt.Errorf("port %d: must be 1 to %d", port, 65535-busOffset)
		}
		if ports.taken[port] || !free(port) {
			return 0, fmt.Errorf("port %d: %w", port, errPortTaken)
		}
		ports.taken[port] = true
		return port, nil
	}
	for range 1000 {
		port = lowPort + rand.IntN(highPort-lowPort)
		if !ports.taken[port] && free(port) && free(port+busOffset) {
			ports.taken[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", lowPort, highPort)
}

func givePort(port int) {
	ports.Lock()
	defer ports.Unlock()
	delete(ports.taken, port)
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
