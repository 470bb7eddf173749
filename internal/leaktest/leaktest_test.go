package leaktest

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// A goroutine that ends late is waited for, and one that never does is found.
func TestFind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	end := make(chan struct{})
	go leftBehind(end)
	if err := find(time.Millisecond, before); err == nil || !strings.Contains(err.Error(), "leftBehind") {
		t.Errorf("while it runs: %v", err)
	}
	time.AfterFunc(time.Second, func() { close(end) }) // longer than goleak waits by itself
	if err := Find(before); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

func leftBehind(end <-chan struct{}) { <-end }
