package meter

// Ring holds charges by the slice of time in which their bound lies, and what the guard has learned about its limit.
// For a rolling window the slices reach from a window ago to the largest slack ahead, so 5 requests a minute need
// the same memory as 2 million. For a bucket they hold charges that have not begun to drain.
type Ring struct {
	Tail  int64       // number of the oldest slice in use
	Due   int64       // rolling: when the oldest slice stops counting; bucket: amount that arrived in the window before the last
	Sum   int64       // bucket: total of the slices, a part of Meter.Held
	Slack int64       // arrival slack in force; 0: that of the Def
	Cut   int64       // capacity cut after unexplained refusals, in 1/1000
	CutAt int64       // time of the cut; 1% comes back per hour
	OddAt int64       // time of the last unexplained refusal
	Gone  int64       // rolling: total that has come back so far; bucket: amount that arrived in the last window with arrivals
	marks [marks]mark // rolling: totals that had come back; bucket: lowest levels
	last  int64       // rolling: number of the latest mark; bucket: number of that window
	// What has arrived, while statements of the provider are followed, see Follow.
	in      int64          // total so far
	inAt    int64          // when the latest of it arrived
	out     int64          // bucket: total that statements have taken out
	outAt   int64          // when they did so last
	inOut   int64          // out as of inAt
	apart   int64          // least time between two notes; 0: nothing is noted
	note    int64          // number of the latest note
	notes   [notes]arrived // arrivals so far, by time
	Settled int64          // charges bound by then are not given back: a statement has replaced them
	slot    [slots]int64
}

// mark is a note in a ring. For a rolling window, n is the most that had come back by the time at. For a bucket, n
// is the lowest level in stretch number at, rounded down.
type mark struct{ at, n int64 }

// marks is the number of marks in a ring. They reach back at least an eighth of a window.
const (
	marks      = 8
	marksApart = 64 // per window
)

// came records that amount comes back at t. One mark covers a 64th of a window.
func (r *Ring) came(d *Def, t, amount int64) {
	if t-r.marks[r.last%marks].at >= d.Window/marksApart {
		r.last++
		r.marks[r.last%marks] = mark{t, r.Gone}
	}
	r.Gone += amount
}

// goneSince returns the most that can have come back since t. It returns false if t is too long ago.
func (r *Ring) goneSince(d *Def, t int64) (int64, bool) {
	n := r.Gone // the total before the next later mark
	for k := r.last; k > r.last-marks; k-- {
		if k <= 0 {
			return r.Gone, true // everything that ever came back
		}
		m := &r.marks[k%marks]
		if t-m.at >= d.Window/marksApart {
			return r.Gone - n, true
		}
		if m.at <= t {
			return r.Gone - m.n, true
		}
		n = m.n
	}
	return 0, false
}

// stretch is the length of time for which a mark keeps a bucket's lowest level, in microseconds. All marks together
// reach back far enough to read a response to its end.
const stretch = 30_000_000

// stood records that a bucket's level is certainly level, before anything is added to it. Times must not go back: an
// older stretch would overwrite a newer one.
func (r *Ring) stood(t, level int64) {
	if r == nil {
		return
	}
	if m := &r.marks[t/stretch%marks]; m.at == t/stretch {
		m.n = min(m.n, level)
	} else {
		*m = mark{t / stretch, level}
	}
}

// lowest returns a lower bound of a bucket's level between two times. It returns 0 if from is too long ago.
func (r *Ring) lowest(from, to int64) int64 {
	if r == nil || to/stretch-from/stretch >= marks {
		return 0
	}
	level := int64(MaxAmount)
	for k := from / stretch; k <= to/stretch; k++ {
		if m := &r.marks[k%marks]; m.at == k {
			level = min(level, m.n)
		}
	}
	return level
}

// lower subtracts amount from the recorded levels between two times.
func (r *Ring) lower(from, to, amount int64) {
	for k := max(from/stretch, to/stretch-marks+1); r != nil && k <= to/stretch; k++ {
		if m := &r.marks[k%marks]; m.at == k {
			m.n = max(m.n-amount, 0)
		}
	}
}

// sent counts an amount that arrives at a bucket at t, by whole windows.
func (r *Ring) sent(d *Def, t, amount int64) {
	if r == nil {
		return
	}
	if k := t / d.Window; k > r.last {
		before := r.Gone
		if k > r.last+1 {
			before = 0
		}
		r.Due, r.Gone, r.last = before, 0, k
	}
	r.Gone = min(r.Gone+amount, maxExact)
}

// Recent returns an upper bound of what arrived at a bucket in the window before t.
func (r *Ring) Recent(d *Def, t int64) int64 {
	switch t/d.Window - r.last {
	case 0:
		return r.Gone + r.Due
	case 1:
		return r.Gone
	}
	return 0
}

// Rescale converts the count of arrivals at a bucket to another window.
func (r *Ring) Rescale(from, to *Def, t int64) {
	r.Gone, r.Due, r.last = r.Recent(from, t), 0, t/to.Window
}

func (r *Ring) at(slice int64) *int64 { return &r.slot[uint64(slice)%slots] }

// live reports whether the slice of a bound is still in the ring.
func (r *Ring) live(d *Def, bound int64) bool { return bound/d.Slice >= r.Tail }

const (
	hour     = 3_600_000_000
	cutBy    = 50 // thousandths
	regained = 10 // thousandths an hour
	cutMost  = 500
)

// Odd records a refusal that the ledger cannot explain. The slack doubles. The second one within an hour also cuts
// the capacity by 5%. It reports whether it cut.
func (r *Ring) Odd(d *Def, t int64) bool {
	if r == nil || d.Guard == Off {
		return false
	}
	r.Slack = min(2*r.slack(d), d.Most)
	again := r.OddAt != 0 && t-r.OddAt <= hour
	r.OddAt = t
	if again {
		r.Cut, r.CutAt = min(r.Cut+cutBy, cutMost), t
	}
	return again
}

// Unbrief applies the whole slack to requests without a response from now on. See Brief.
func (r *Ring) Unbrief(d *Def) {
	if r != nil && d.Guard != Off && r.Slack == 0 {
		r.Slack = d.Slack
	}
}

func (r *Ring) regain(t int64) {
	for r.Cut > 0 && t-r.CutAt >= hour {
		r.Cut, r.CutAt = max(r.Cut-regained, 0), r.CutAt+hour
	}
}

func (r *Ring) slack(d *Def) int64 {
	if r == nil || r.Slack == 0 {
		return d.Slack
	}
	return r.Slack
}

// SlackOf returns the arrival slack in force.
func SlackOf(d *Def, r *Ring) int64 { return r.slack(d) }
