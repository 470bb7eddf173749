package eventlog

import (
	"slices"
	"testing"

	"github.com/sluicehq/sluice/inspect"
)

// A report lists the names that clients used next to the class that the provider limits, although the store counts by
// class.
func TestReportHasModelsAsRequested(t *testing.T) {
	c := &callerTally{}
	for _, name := range []string{"claude-opus-4-5", "claude-opus-4-1-20250805", "claude-opus-4-5"} {
		c.name("opus-4", name)
	}
	c.name("gone", "x")
	for i := range 100 {
		c.name("many", string(rune('a'+i)))
	}
	rep := &inspect.CallerReport{Models: map[string]inspect.ModelReport{"opus-4": {Sends: 3}, "many": {}}}
	c.nameIn(rep)
	if m := rep.Models["opus-4"]; m.Sends != 3 || !slices.Equal(m.Requested, []string{"claude-opus-4-1-20250805", "claude-opus-4-5"}) {
		t.Errorf("%+v", m)
	}
	if n := len(rep.Models["many"].Requested); n != maxRequested || len(rep.Models) != 2 {
		t.Errorf("%d names, %d models", n, len(rep.Models))
	}
}
