package eventlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// A log full of invented names is counted in bounded memory, and the sums stay complete.
func TestACountOfManyNamesIsBounded(t *testing.T) {
	t.Parallel()
	ta := newTally(time.Time{}, func(string, time.Time, bool) bool { return true })
	const names = maxCallers + 1000
	for i := range names {
		e := send(fmt.Sprint("agent ", i), i)
		e.Model, e.Requested = fmt.Sprint("model ", i), fmt.Sprint("name ", i)
		ta.add(&e)
	}
	r := ta.resources["api"]
	if len(r.callers) > maxCallers+1 || len(r.total.Models) > maxCounted+1 || len(r.total.requested) > maxCounted {
		t.Errorf("%d callers, %d models, %d names", len(r.callers), len(r.total.Models), len(r.total.requested))
	}
	rep := inspect.ResourceReport{}
	r.addTo(&rep)
	sends := int64(0)
	for _, m := range rep.Total.Models {
		sends += m.Sends
	}
	if rep.Total.FirstSends != names || sends != names || len(rep.Callers) > inspect.MaxReportCallers {
		t.Errorf("%d sends, %d by model, %d callers", rep.Total.FirstSends, sends, len(rep.Callers))
	}
}

// ReadKinds skips other events without parsing them.
func TestReadKindsFindsTheSameEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, want := "", 0
	for i := range 50 {
		e := send("a", i)
		if i%7 == 0 {
			e.Kind = inspect.EventRefused
			want++
		}
		if i%5 == 0 {
			e.Reason = `"event":"refused"`
		}
		text += string(line(e))
	}
	put(t, dir, 0, text+`{"time":"2026-03-04T12:00:00Z","event":7,"agent":"\"event\":\"refused\""}`+"\n")
	got := 0
	if err := ReadKinds(dir, time.Time{}, []string{inspect.EventRefused}, func(e inspect.Event) bool {
		if e.Kind != inspect.EventRefused {
			t.Errorf("a %s", e.Kind)
		}
		got++
		return true
	}); err != nil || got != want {
		t.Errorf("%d of %d, %v", got, want, err)
	}
}
