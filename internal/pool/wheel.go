package pool

// wheelStep is how exactly tickets expire: at the first multiple of it, in
// microseconds, at or after their time.
const wheelStep = 100_000

const wheelSlots = 4096

// wheel finds the tickets whose time has come: lists by the step in which they
// are due, modulo the wheel's size. Adding and removing are a few writes, and a
// ticket that is closed in time costs nothing more. Tickets that are due soon, each
// after the one before it, are in a line of their own: no slot is looked up for them.
type wheel struct {
	tick  int64 // the last step that was looked at
	turns int64 // when the next one begins
	next  int64 // no ticket is due before this step; 0: none is due at all
	count int   // in the slots
	first int32 // of the line
	last  int32
	slots [wheelSlots]int32
}

// inLine is the slot of a ticket in the line.
const inLine = -1

func step(due int64) int64 { return (due + wheelStep - 1) / wheelStep }

func (w *wheel) add(p *Pool, i int32, t *ticket) {
	s := max(step(t.due), w.tick+1)
	t.due = s * wheelStep
	if t.due <= p.now+sessionLife+wheelStep && (w.last == 0 || p.tickets.At(w.last).due <= t.due) {
		t.slot, t.prev, t.next = inLine, w.last, 0
		if w.last != 0 {
			p.tickets.At(w.last).next = i
		} else {
			w.first = i
		}
		w.last = i
		return
	}
	t.slot = int32(uint64(s) % wheelSlots)
	slot := &w.slots[t.slot]
	t.prev, t.next = 0, *slot
	if *slot != 0 {
		p.tickets.At(*slot).prev = i
	}
	*slot = i
	if w.count++; w.count == 1 || s < w.next {
		w.next = s
	}
}

func (w *wheel) remove(p *Pool, t *ticket) {
	if t.due == 0 {
		return
	}
	if t.slot == inLine {
		w.leave(p, t)
		return
	}
	if t.prev != 0 {
		p.tickets.At(t.prev).next = t.next
	} else {
		w.slots[t.slot] = t.next
	}
	if t.next != 0 {
		p.tickets.At(t.next).prev = t.prev
	}
	t.due, t.prev, t.next = 0, 0, 0
	w.count--
}

// leave takes a ticket out of the line.
func (w *wheel) leave(p *Pool, t *ticket) {
	if t.prev != 0 {
		p.tickets.At(t.prev).next = t.next
	} else {
		w.first = t.next
	}
	if t.next != 0 {
		p.tickets.At(t.next).prev = t.prev
	} else {
		w.last = t.prev
	}
	t.due, t.prev, t.next = 0, 0, 0
}

// expireTickets ends what is due, each at its own time though nobody may have looked
// since, and sweeps a little.
func (p *Pool) expireTickets() {
	w := &p.wheel
	now := p.now / wheelStep
	if w.turns = (now + 1) * wheelStep; now == w.tick {
		return
	}
	if next := w.nextStep(p); next != 0 && next <= now {
		end := p.now
		for s := max(w.tick+1, next); s <= now && (w.count > 0 || w.first != 0); s++ {
			p.now = s * wheelStep
			if p.nextHush != 0 && p.now >= p.nextHush {
				p.hush()
			}
			if w.count > 0 {
				p.expireSlot(s)
			}
			// A ticket that goes on is put behind: it is due later.
			for i := w.first; i != 0 && p.tickets.At(i).due <= p.now; i = w.first {
				p.expire(i)
			}
		}
		w.tick, p.now = now, end
		w.findNext(p)
	}
	w.tick = now
	p.sweepSome(64)
}

func (p *Pool) expireSlot(s int64) {
	for i := p.wheel.slots[s%wheelSlots]; i != 0; {
		next := p.tickets.At(i).next
		if p.tickets.At(i).due <= p.now {
			p.expire(i)
		}
		i = next
	}
}

// nextStep returns a step before which no ticket is due, 0 if none is.
func (w *wheel) nextStep(p *Pool) int64 {
	var s int64
	if w.count > 0 {
		s = w.next
	}
	if w.first != 0 {
		if line := p.tickets.At(w.first).due / wheelStep; s == 0 || line < s {
			s = line
		}
	}
	return s
}

// findNext looks for the first slot that has anything in it.
func (w *wheel) findNext(p *Pool) {
	w.next = w.tick + 1
	for n := 0; w.count > 0 && n < wheelSlots; n++ {
		if i := w.slots[w.next%wheelSlots]; i != 0 {
			return
		}
		w.next++
	}
}

// nextDue returns when the next ticket may expire, 0 if none will. It can be too
// early, after a ticket was closed in time; it is never too late.
func (w *wheel) nextDue(p *Pool) int64 {
	s := w.nextStep(p)
	if s == 0 {
		return 0
	}
	return max(s, w.tick+1) * wheelStep
}
