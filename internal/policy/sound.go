package policy

// most bounds the times and amounts that the arithmetic can take.
const most = 1 << 53

func within(list ...int64) bool {
	for _, n := range list {
		if n < -most || n > most {
			return false
		}
	}
	return true
}

// Sound reports whether the numbers of a breaker, which come from elsewhere, are in range.
func (b *Breaker) Sound() bool {
	for i := range b.ring {
		if !within(b.ring[i].t, b.ring[i].left) {
			return false
		}
	}
	return b.head >= 0 && b.head < MaxSamples && b.count >= 0 && b.count <= MaxSamples &&
		within(b.From, b.Room, b.Until, b.Gone, b.latest, b.pressed, b.ramp, b.sent)
}

// Sound reports whether the numbers of a pace, which come from elsewhere, are in range.
func (p *Pace) Sound() bool { return within(p.Next, p.at, p.base, p.paid) }
