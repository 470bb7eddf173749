package logstore

import (
	"sync"

	"golang.org/x/sys/unix"
)

// bootID names the current boot of this machine, "" if unknown.
var bootID = sync.OnceValue(func() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
})
