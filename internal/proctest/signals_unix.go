//go:build unix

package proctest

import (
	"os"
	"syscall"
)

// inherited are the signals that Go programs go on ignoring when they were started that way.
var inherited = []os.Signal{syscall.SIGHUP, syscall.SIGINT}
