package redisstore

import (
	"sync"

	"golang.org/x/sys/unix"
)

// bootID names this machine since it was started, "" if that is not known.
var bootID = sync.OnceValue(func() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
})
