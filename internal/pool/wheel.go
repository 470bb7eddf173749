package pool

// wheelStep is the precision of expiry, in microseconds: a ticket expires at the first multiple at or after its time.
const wheelStep = 100_000

const wheelSlots = 4096

// wheel is a timer wheel that finds the tickets to expire. It has a list of tickets for each step, modulo the wheel's
// size. Adding and removing a ticket are a few writes, so a ticket that is closed in time costs little. Tickets that are
// due soon and are added in the order of their time are in a list of their own, the line, which needs no slots.
type wheel struct {
	tick  int64 // the last step that was processed
	turns int64 // when the next step begins
	next  int64 // no ticket in the slots is due before this step
	count int   // number of tickets in the slots
	first int32 // first ticket of the line
	last  int32 // last ticket of the line
	slots [wheelSlots]int32
}

// inLine is the value of ticket.slot for tickets in the line.
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

// leave removes a ticket from the line.
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

// expireTickets expires the tickets that are due, each at its own time even if no step ran then. It also sweeps some
// unused records.
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
			// A rescheduled ticket goes to the end, because it is due later.
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

// nextStep returns a step before which no ticket is due, or 0 if there are no tickets.
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

// findNext sets next to the first step whose slot is not empty.
func (w *wheel) findNext(p *Pool) {
	w.next = w.tick + 1
	for n := 0; w.count > 0 && n < wheelSlots; n++ {
		if i := w.slots[w.next%wheelSlots]; i != 0 {
			return
		}
		w.next++
	}
}

// nextDue returns when the next ticket may expire, or 0 if none will. After a ticket was closed in time it can be too
// early. It is never too late.
func (w *wheel) nextDue(p *Pool) int64 {
	s := w.nextStep(p)
	if s == 0 {
		return 0
	}
	return max(s, w.tick+1) * wheelStep
}
