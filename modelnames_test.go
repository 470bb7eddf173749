package sluice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// A gate remembers the name last used for a model, for a bounded number of models.
func TestStatusHasModelsAsRequested(t *testing.T) {
	limit := rolling(1000, time.Hour)
	limit.Per = []sluice.Scope{sluice.PerModel}
	g := open(t, limit)
	ask := func(model, written string) {
		end(t, acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Model: model, Priced: written}))
	}
	ask("opus-4", "claude-opus-4-1")
	ask("opus-4", "claude-opus-4-5")
	ask("own", "own")
	ask("none", "")
	want := "[{none  0} {opus-4 claude-opus-4-5 0} {own  0}]"
	if got := fmt.Sprint(state(t, g).Models); got != want {
		t.Errorf("models are %s, want %s", got, want)
	}
	for i := range 200 {
		ask(fmt.Sprint("m", i), fmt.Sprint("written-", i))
	}
	named := 0
	for _, m := range state(t, g).Models {
		if m.Requested != "" {
			named++
		}
	}
	if named != 64 {
		t.Errorf("%d names are remembered, want 64", named)
	}
}
