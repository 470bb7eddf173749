package main

import (
	"strings"
	"testing"
	"time"
)

func TestLedger(t *testing.T) {
	l := newLedger()
	var ready stamp
	l.read(4, strings.NewReader(`ready 7
use rolling rolling.a-1 100 3000000000 111
renew x-1
miss places 1 2 3 store places: it is gone
closing rolling.a-1 120
lost bucket 5 no answer
back bucket 6
tick 7 8000000
closed rolling.a-1 130 -
note hello there
use rolling rolling.a-2 1
closing rolling.a-9 1
use nowhere x-1 1 1 1
what is this
use roll`), func(at stamp) { ready = at })
	if ready != 7 {
		t.Errorf("ready at %d", ready)
	}
	want := use{worker: 4, pool: rolling, id: "rolling.a-1", asked: 100, within: 3 * time.Second, used: 111, closing: 120, closed: 130, closeKind: "-"}
	if len(l.uses) != 1 || l.uses[0] != want || len(l.open) != 0 {
		t.Errorf("uses %+v, open %v", l.uses, l.open)
	}
	if len(l.misses) != 1 || l.misses[0] != (miss{worker: 4, pool: places, asked: 1, within: 2, got: 3, kind: "store", text: "places: it is gone"}) {
		t.Errorf("misses %+v", l.misses)
	}
	if len(l.outages) != 2 || l.outages[0] != (outage{worker: 4, pool: bucket, at: 5, text: "no answer"}) || !l.outages[1].over {
		t.Errorf("outages %+v", l.outages)
	}
	if l.renewed != 1 {
		t.Errorf("%d renewed", l.renewed)
	}
	if l.late != 8*time.Millisecond {
		t.Errorf("late %v", l.late)
	}
	// The note, and five lines that make no sense.
	if len(l.notes) != 6 || l.notes[0] != "worker 4: hello there" {
		t.Errorf("%q", l.notes)
	}
}

func TestNotesAreBounded(t *testing.T) {
	l := newLedger()
	for range 2 * maxNotes {
		l.note("x")
	}
	if len(l.notes) != maxNotes {
		t.Errorf("%d notes", len(l.notes))
	}
}
