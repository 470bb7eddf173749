package meter

// Mode says how precisely the arrival of a charged request is known.
type Mode uint8

// The modes.
const (
	Bound  Mode = iota // it arrived by Mark
	Held               // its arrival is unknown; the charge stays until it is bound
	Placed             // it arrives by Mark at the latest; a response may move it earlier
)

// Charge is the amount that one request took from one meter.
type Charge struct {
	Amount int64
	Mark   int64 // the bound, if one is known
	Mode   Mode
}

// Take charges amount at time t. slow says that headers usually take longer than twice the slack, so that the slack
// is the better bound. The caller has checked that there is room.
func (m *Meter) Take(d *Def, r *Ring, t, amount int64, slow bool) Charge {
	c := Charge{Amount: amount, Mark: t}
	switch {
	case d.Kind == Concurrency:
		c.Mode = Held
		m.Held += amount
	case d.Guard == Off && !d.Late:
		m.add(d, r, t, amount)
	case d.Guard == Auto && slow && !d.Late:
		m.chargeAt(d, r, &c, t+r.slack(d))
	default:
		c.Mode = Held
		m.hold(d, amount)
	}
	return c
}

// TakeAll is Take for several requests that take amount together. mode and mark are what Take would give each.
func (m *Meter) TakeAll(d *Def, r *Ring, t, mark, amount int64, mode Mode) {
	switch {
	case d.Kind == Concurrency:
		m.Held += amount
	case mode == Bound:
		m.add(d, r, t, amount)
	case mode == Placed:
		c := Charge{Amount: amount}
		m.chargeAt(d, r, &c, mark)
	default:
		m.hold(d, amount)
	}
}

// SettleAll is Bind, Settle and Release for held charges that end or are bound at t. Together they held gone. Of
// that, adds arrives now, and backs of adds was not used after all: SettleAll gives it back after adding it. The
// meter has been advanced to t.
func (m *Meter) SettleAll(d *Def, r *Ring, t, gone, adds, backs int64) {
	m.Held -= gone
	switch {
	case d.Kind == Concurrency:
	case m.isFixed(d):
		m.Level += adds - backs - gone // gone was part of Level
		if t >= m.Last {
			m.Rem += adds - backs
		}
	case d.Kind == Bucket:
		if adds > 0 {
			m.add(d, r, t, adds)
		}
		if backs > 0 {
			r.lower(t, t, backs)
			m.Level -= backs
		}
	default:
		m.add(d, r, t, adds-backs)
	}
}

// hold enters an amount whose arrival is unknown.
func (m *Meter) hold(d *Def, amount int64) {
	m.Held += amount
	if m.isFixed(d) {
		m.Level += amount
	}
}

// SlowBeyond returns the header latency above which the slack is the better bound.
func SlowBeyond(d *Def, r *Ring) int64 { return 2 * r.slack(d) }

// add enters an amount that arrived by t.
func (m *Meter) add(d *Def, r *Ring, t, amount int64) {
	r.arrive(t, amount)
	switch {
	case d.Kind == Bucket:
		r.sent(d, t, amount)
		m.fill(d, r, amount)
	case m.slices(d):
		*r.at(t / d.Slice) += amount
		m.Level += amount
	default:
		m.Level += amount
		if t >= m.Last {
			m.Rem += amount // the reset may have happened or not: the amount counts on both sides
		}
	}
}

// chargeAt enters an amount that will have arrived by mark, a time ahead of now.
func (m *Meter) chargeAt(d *Def, r *Ring, c *Charge, mark int64) {
	c.Mode, c.Mark = Placed, mark
	if d.Kind == Bucket {
		slice := mark / d.Slice
		if r.Sum == 0 || slice < r.Tail {
			r.Tail = slice
		}
		*r.at(slice) += c.Amount
		r.Sum += c.Amount
		m.Held += c.Amount
		return
	}
	m.add(d, r, mark, c.Amount)
}

// Bind says that the request arrived by t: its response began, or its ticket expired. Concurrency charges stay until
// Release.
func (m *Meter) Bind(d *Def, r *Ring, t int64, c *Charge) {
	if d.Kind == Concurrency || c.Mode == Bound {
		return
	}
	switch {
	case c.Mode == Placed && t >= c.Mark && !m.pending(d, r, c):
		c.Mode = Bound
		return
	case c.Mode == Placed:
		m.takeOut(d, r, c.Amount, c)
		m.add(d, r, t, c.Amount)
	case m.isFixed(d):
		m.Held -= c.Amount
		if t >= m.Last {
			m.Rem += c.Amount
		}
	default:
		m.Held -= c.Amount
		m.add(d, r, t, c.Amount)
	}
	c.Mode, c.Mark = Bound, t
}

// BindLate is Bind for a report that arrives at t of what happened at at. A window counts the charge from then on, if that
// is not over by now. Other limits count it from t on, which is later.
func (m *Meter) BindLate(d *Def, r *Ring, t, at int64, c *Charge) {
	if !m.slices(d) || !r.live(d, at) {
		at = t
	}
	m.Bind(d, r, at, c)
}

// Lapse ends the charge of a request that was never reported on. It arrived by due, when its ticket expired, which
// may be long ago.
func (m *Meter) Lapse(d *Def, r *Ring, due int64, c *Charge) {
	m.Advance(d, r, due)
	if c.Mode == Held && m.slices(d) && !r.live(d, due) {
		m.Held -= c.Amount // a whole window has passed since
		c.Mode, c.Mark = Bound, due
		return
	}
	m.Bind(d, r, due, c)
}

// Spend says that no report will follow on a request that was granted at granted and may still be in flight. The
// slack bounds its arrival, or the shorter Brief counted from now. With a strict guard, the ticket's expiry does.
func (m *Meter) Spend(d *Def, r *Ring, t, granted int64, c *Charge) {
	if c.Mode != Held || d.Kind == Concurrency || d.Guard == Strict {
		return
	}
	bound := min(granted+r.slack(d), max(t, granted)+m.Brief(d, r))
	if d.Guard == Off || t >= bound {
		m.Bind(d, r, max(t, granted), c)
		return
	}
	m.takeOut(d, r, c.Amount, c)
	m.chargeAt(d, r, c, bound)
}

// Orphan says that the sender of a request is gone since t. A request written before that has arrived when the slack
// is over. With a strict guard this holds only if proven: nothing can be written later.
func (m *Meter) Orphan(d *Def, r *Ring, t int64, c *Charge, proven bool) {
	if c.Mode != Held || d.Kind == Concurrency || d.Guard == Strict && !proven {
		return
	}
	if d.Guard == Off {
		m.Bind(d, r, t, c)
		return
	}
	m.takeOut(d, r, c.Amount, c)
	m.chargeAt(d, r, c, t+r.slack(d))
}

// leastBrief is the lower bound of Brief, in microseconds.
const leastBrief = 250_000

// Brief returns how long a request without a report may take to arrive. It is the slack, but at most 30% of the time
// in which the whole limit comes back: on a small limit the full slack would cost half of the rate. A configured
// slack counts in full, and so does the slack after an unexplained refusal.
func (m *Meter) Brief(d *Def, r *Ring) int64 {
	slack := r.slack(d)
	if d.Given || r != nil && r.Slack != 0 {
		return slack
	}
	back := d.Window
	if d.Kind == Bucket {
		if m.N == 0 {
			return slack
		}
		back = m.Cap * m.W / m.N
	}
	return min(slack, max(3*ceilDiv(back, 10), leastBrief))
}

// Release ends a concurrency charge.
func (m *Meter) Release(d *Def, c *Charge) {
	if d.Kind == Concurrency && c.Mode == Held {
		m.Held -= c.Amount
		c.Mode = Bound
	}
}

// Refund takes back a charge whose request was never sent.
func (m *Meter) Refund(d *Def, r *Ring, t int64, c *Charge) {
	m.reduce(d, r, t, c, c.Amount)
	c.Amount, c.Mode = 0, Bound
}

// Settle corrects a charge to the amount really used. If it is less, Settle gives back the difference where it still
// stands. If it is more, the difference joins a charge whose bound is still ahead, and otherwise is a new charge at
// t. Settle does nothing for concurrency.
func (m *Meter) Settle(d *Def, r *Ring, t int64, c *Charge, actual int64) {
	switch {
	case d.Kind == Concurrency:
	case actual < c.Amount:
		m.reduce(d, r, t, c, c.Amount-actual)
		c.Amount = actual
	case actual > c.Amount:
		more := Charge{Amount: actual - c.Amount}
		switch {
		case c.Mode == Held:
			m.hold(d, more.Amount)
		case c.Mode == Placed && t < c.Mark:
			m.chargeAt(d, r, &more, c.Mark)
		default:
			// The two parts have different bounds. A charge is settled only once, so the mark of the first is kept.
			m.Bind(d, r, t, c)
			m.add(d, r, t, more.Amount)
		}
		c.Amount = actual
	}
}

// reduce takes part of a charge back out, if it still stands.
func (m *Meter) reduce(d *Def, r *Ring, t int64, c *Charge, amount int64) {
	if d.Kind == Concurrency && c.Mode == Bound {
		return
	}
	if d.Kind == Bucket && c.Mode != Held && !m.pending(d, r, c) {
		m.undrain(r, t, c.Mark, amount)
		return
	}
	m.takeOut(d, r, amount, c)
}

// pending reports whether c is in a bucket's ring and has not begun to drain.
func (m *Meter) pending(d *Def, r *Ring, c *Charge) bool {
	return d.Kind == Bucket && c.Mode == Placed && r.live(d, c.Mark)
}

// undrain takes an overcharge at mark out of a bucket. The part that has drained since has come back already and
// must not be given back twice. The exception is a bucket whose level stayed above the amount all the time: it would
// have drained just as much without it.
//
// Let the level be L(s), a real number, for s from mark to t. Taking y out of the charge at mark lowers every L(s)
// by exactly y if and only if y is at most the least of them. So y is a whole number that is at most the least L(s):
// both bounds below are rounded down. The meter then is as if the charge had been smaller by y from the beginning.
// Because y is at most amount, the level is never below the provider's.
func (m *Meter) undrain(r *Ring, t, mark, amount int64) {
	if mark < m.Since {
		return
	}
	still := amount // the part that cannot have drained
	if m.N > 0 {
		still = 0
		if t-mark <= maxExact/m.N {
			still = amount - ceilDiv((t-mark)*m.N, m.W)
		}
	}
	back := min(max(still, r.lowest(mark, t)), m.certain(), amount)
	if back <= 0 {
		return
	}
	r.lower(mark, t, back)
	m.Level -= back
}

// takeOut removes an amount from where the charge stands.
func (m *Meter) takeOut(d *Def, r *Ring, amount int64, c *Charge) {
	switch {
	case d.Kind == Concurrency:
		m.Held -= amount
	case m.isFixed(d):
		if c.Mode == Held {
			m.Held -= amount
			m.Level -= amount
			return
		}
		if c.Mark >= m.Since {
			m.Level = max(m.Level-amount, 0)
		}
		if c.Mark >= m.Last {
			m.Rem = max(m.Rem-amount, 0)
		}
	case c.Mode == Held:
		m.Held -= amount
	case d.Kind == Bucket: // pending
		*r.at(c.Mark / d.Slice) -= amount
		r.Sum -= amount
		m.Held -= amount
	default:
		if c.Mark > r.Settled && r.live(d, c.Mark) {
			amount = min(amount, *r.at(c.Mark / d.Slice))
			*r.at(c.Mark / d.Slice) -= amount
			m.Level -= amount
		}
	}
}
