//go:build !unix

package http1

import "net"

// canCheck tells that an idle connection can be asked whether the server has closed it.
const canCheck = false

type check struct{}

func (*check) init(net.Conn) {}

func (*check) quiet() bool { return false }
