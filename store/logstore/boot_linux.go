package logstore

import (
	"os"
	"strings"
	"sync"
)

// bootID names the current boot of this machine, "" if unknown.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})
