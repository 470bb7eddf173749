package meter

import (
	"testing"
	"time"
)

// Each is named after what once went wrong. docs/algorithms.md has the numbers of the first.

// stretchStart is a moment at which a new stretch of remembered lows begins.
const stretchStart = epoch / stretch * stretch

// newBucket makes a full bucket's worth of room: size per window, as much at once.
func newBucket(t *testing.T, guard Guard, window time.Duration, size, burst, now int64) (*Def, *Meter, *Ring) {
	t.Helper()
	d, err := Compile(Bucket, guard, window, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, r := new(Meter), new(Ring)
	if err := m.Start(&d, r, now, size, burst, 0); err != nil {
		t.Fatal(err)
	}
	return &d, m, r
}

// charge takes an amount at now whose request has arrived by then.
func charge(d *Def, m *Meter, r *Ring, now, amount int64) Charge {
	m.Advance(d, r, now)
	c := m.Take(d, r, now, amount, false)
	m.Bind(d, r, now, &c)
	return c
}

// A bucket stood at 0.74, which is stored as 1, and a whole unit was given back.
func TestBucketGivesBackWhatItStoodAtRoundedDown(t *testing.T) {
	const unit = 62_500 // microseconds: 80 in 5 s
	now := int64(stretchStart) - unit
	d, m, r := newBucket(t, Auto, 5*time.Second, 80, 80, now)
	var sent []*request
	arrive := func(amount int64) *request {
		q := &request{Charge: charge(d, m, r, now, amount), counts: amount, granted: now, arrives: now}
		sent = append(sent, q)
		return q
	}
	arrive(3)
	now += unit
	q := arrive(3)          // on top of 2
	now += 426 * unit / 100 // of the 5 stand 0.74
	arrive(79)              // 79.74: full
	m.Settle(d, r, now, &q.Charge, 1)
	q.counts = 1
	// Without the 2 the bucket would have been empty before the 79: only 0.74 of them still count.
	for range 3 {
		for m.Room(d, r) > 0 {
			arrive(1)
		}
		now += 74 * unit / 100
		m.Advance(d, r, now)
	}
	if worst := worstBucket(sent, 80, 5*second); worst > 80 {
		t.Errorf("the provider counts %d, the limit is 80", worst)
	}
}

// A ticket lapsed that was due eight stretches ago. It was recorded in the slot of the current stretch, and the
// lowest level there was lost.
func TestTicketThatLapsedLongAgoLeavesTheLowsOfToday(t *testing.T) {
	due := int64(stretchStart) + 28*second
	d, m, r := newBucket(t, Auto, time.Minute, 60, 100, stretchStart)
	old := m.Take(d, r, stretchStart, 10, false)
	today := int64(stretchStart) + marks*stretch
	charge(d, m, r, today-10*second, 30)
	q := charge(d, m, r, today, 20) // on top of 20
	charge(d, m, r, today+29*second, 5)
	if low := r.lowest(today, today+29*second); low != 11 {
		t.Fatalf("it stood at %d, want 11", low)
	}
	m.Lapse(d, r, due, &old)
	before := m.Used(d, r)
	m.Settle(d, r, today+29*second, &q, 1)
	if back := before - m.Used(d, r); back != 11 {
		t.Errorf("%d given back, the bucket stood at 11", back)
	}
}

// A clamped level no longer held all charges, but they were given back in full.
func TestNothingIsGivenBackOfALevelThatWasHeldDown(t *testing.T) {
	now := int64(epoch)
	d, m, r := newBucket(t, Auto, 100*24*time.Hour, 1, 300, now)
	var early []Charge
	for range 3 {
		early = append(early, charge(d, m, r, now, 200))
	}
	charge(d, m, r, now, 2400) // by force
	for i := range early {
		m.Settle(d, r, now, &early[i], 0)
	}
	if room := m.Room(d, r); room > 0 {
		t.Errorf("room for %d: 2400 were sent just now, the limit is 300", room)
	}
}
