package redisstore

import (
	"os"
	"strings"
	"sync"
)

// bootID names this machine since it was started, "" if that is not known.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})
