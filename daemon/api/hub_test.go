package api

import (
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/inspect"
)

func (h *Hub) add(t *testing.T, from, to int64) {
	t.Helper()
	for n := from; n <= to; n++ {
		h.Add(inspect.Event{Kind: inspect.EventSend, Count: n})
	}
}

func listen(t *testing.T, h *Hub, after string) *Listener {
	t.Helper()
	l, err := h.Listen(after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// all takes what there is. It checks that the events are in order, and returns how many are lost, the first and the last,
// and the last id.
func (l *Listener) all(t *testing.T) (lost, first, last int64, id string) {
	t.Helper()
	select {
	case <-l.Wake:
	default:
		return 0, 0, 0, ""
	}
	for more := true; more; {
		var list []Told
		list, more = l.Take()
		if len(list) > atOnce {
			t.Errorf("%d at once", len(list))
		}
		for _, x := range list {
			switch {
			case x.Event.Kind == inspect.EventDropped:
				lost += x.Event.Count
				if x.ID != "" {
					t.Errorf("what is told to one listener has the id %s", x.ID)
				}
				continue
			case first == 0:
				first = x.Event.Count
			case x.Event.Count != last+1:
				t.Errorf("after %d comes %d", last, x.Event.Count)
			}
			last, id = x.Event.Count, x.ID
		}
	}
	return lost, first, last, id
}

// A listener that was disconnected states its last id and gets what it missed, each event once. What is not kept any more
// is counted.
func TestAListenerReadsOnWhereItWas(t *testing.T) {
	h := NewHub()
	h.add(t, 1, 5) // before the first listener
	l := listen(t, h, "")
	h.add(t, 6, 8)
	lost, first, last, id := l.all(t)
	if lost != 0 || first != 6 || last != 8 {
		t.Fatalf("%d are lost of %d to %d", lost, first, last)
	}
	l.Close()
	if _, _, last, _ := listen(t, h, id).all(t); last != 0 {
		t.Errorf("without anything new: %d", last)
	}
	h.add(t, 9, 209)
	if lost, first, last, _ := listen(t, h, id).all(t); lost != 0 || first != 9 || last != 209 {
		t.Errorf("%d are lost of %d to %d", lost, first, last)
	}
	h.add(t, 210, 209+kept)
	if lost, first, last, _ := listen(t, h, id).all(t); lost != 201 || first != 210 || last != 209+kept {
		t.Errorf("%d are lost of %d to %d", lost, first, last)
	}
}

// An id of another run, or none at all, means the events from now on.
func TestIDsThatMeanNothing(t *testing.T) {
	h, other := NewHub(), NewHub()
	listen(t, h, "")
	h.add(t, 1, 3)
	for _, id := range []string{"", "x", "-1", "1", other.run + "-1", h.run, h.run + "-", h.run + "-0", h.run + "--1", h.run + "-4", h.run + "-99999999999999999999", h.run + "-1x"} {
		l := listen(t, h, id)
		if _, first, _, _ := l.all(t); first != 0 {
			t.Errorf("%q: from %d on", id, first)
		}
		l.Close()
	}
}

// A slow listener is told how many events it has lost, and holds nothing back.
func TestASlowListenerIsToldWhatItLost(t *testing.T) {
	h := NewHub()
	slow, fast := listen(t, h, ""), listen(t, h, "")
	for n := int64(1); n <= 3*kept; n++ {
		h.add(t, n, n)
		if n%100 == 0 {
			if lost, _, last, _ := fast.all(t); lost != 0 || last != n {
				t.Fatalf("the fast one lost %d of %d", lost, last)
			}
		}
	}
	if lost, first, last, _ := slow.all(t); lost != 2*kept || first != 2*kept+1 || last != 3*kept {
		t.Errorf("%d are lost, then %d to %d", lost, first, last)
	}
}

// A listener that waits learns of each event, with many that are added at the same time.
func TestAListenerThatWaitsIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		l := listen(t, h, "")
		for range 10 {
			go func() {
				for range 50 {
					h.Add(inspect.Event{Kind: inspect.EventSend})
				}
			}()
		}
		for n := 0; n < 500; {
			<-l.Wake
			for more := true; more; {
				var list []Told
				list, more = l.Take()
				n += len(list)
			}
		}
	})
}
