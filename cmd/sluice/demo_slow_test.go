//go:build slow && linux

package main

import "testing"

func TestDemoComesOutAsPromised(t *testing.T) {
	r, text := playDemo(t)
	if !r.OK {
		t.Fatalf("%s", text)
	}
	checkPromises(t, r, text)
}
