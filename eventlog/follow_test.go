package eventlog

import (
	"testing"

	"github.com/sluicehq/sluice/inspect"
)

// A follower gets every event of other processes once, across rotations, and none of its own.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	early := small(dir, 2000)
	early.Add(send("early", 0))
	shut(t, early)
	own := small(dir, 2000)
	tail := Follow(dir, own.Process())
	defer tail.Close()
	heard := map[string]int{}
	read := func() { tail.Read(func(e inspect.Event) { heard[e.Agent]++ }) }
	for range 20 { // three or so fill a file
		w := small(dir, 2000)
		w.Add(send("other", 0))
		shut(t, w)
		read()
	}
	own.Add(send("own", 0))
	shut(t, own)
	read()
	if len(heard) != 1 || heard["other"] != 20 {
		t.Errorf("heard %v", heard)
	}
}
