//go:build slow

package main

import (
	"os/exec"
	"strings"
	"testing"
)

func TestGroffTakesTheManualPages(t *testing.T) {
	_, pages := manPages()
	var all []string
	for _, text := range pages {
		all = append(all, text)
	}
	cmd := exec.Command("groff", "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(strings.Join(all, ""))
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%v: %s", err, said)
	}
}
