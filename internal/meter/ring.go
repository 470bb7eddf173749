package meter

// Ring holds charges by the slice of time in which their bound lies, and what the
// guard has learned about its limit. For a rolling window the slices reach from
// a window ago to the largest slack ahead, so it needs the same memory for five a
// minute as for two million. For a bucket they hold what has not begun to
// drain.
type Ring struct {
	Tail  int64       // number of the oldest slice in use
	Due   int64       // rolling: when the oldest slice stops counting; bucket: what arrived in the window before the last
	Sum   int64       // bucket: total in the slices, which is a part of what is held
	Slack int64       // arrival slack in force; 0: the limit's own
	Cut   int64       // capacity cut off after unexplained refusals, in 1/1000
	CutAt int64       // since when; it regains 1% an hour
	OddAt int64       // the last unexplained refusal
	Gone  int64       // rolling: all that has come back so far; bucket: what arrived in the last window that something did
	marks [marks]mark // rolling: what had come back; bucket: how low it stood
	last  int64       // rolling: number of the latest mark; bucket: number of that window
	slot  [slots]int64
}

// mark remembers how much of a rolling window had come back by a moment, at the most; or
// the lowest level of a bucket in a stretch of time, rounded down; at numbers the stretch.
type mark struct{ at, n int64 }

// marks is how many a ring has: they reach back an eighth of a window at least.
const (
	marks      = 8
	marksApart = 64 // to a window
)

// came notes that amount comes back at t. A mark stands for what comes back within a part of a window.
func (r *Ring) came(d *Def, t, amount int64) {
	if t-r.marks[r.last%marks].at >= d.Window/marksApart {
		r.last++
		r.marks[r.last%marks] = mark{t, r.Gone}
	}
	r.Gone += amount
}

// goneSince returns how much has come back since t at the most; false if that is too long
// ago to tell.
func (r *Ring) goneSince(d *Def, t int64) (int64, bool) {
	n := r.Gone // all that had come back before what a mark stands for was over
	for k := r.last; k > r.last-marks; k-- {
		if k <= 0 {
			return r.Gone, true // all there ever was
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

// stretch is how long the lowest level of a bucket is told apart. Together they reach back
// far enough for an answer to be read to its end.
const stretch = 30_000_000

// stood notes that a bucket stands at level for certain, before anything is added to it.
// Times never go back: an older stretch would overwrite a newer one.
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

// lowest returns a level that a bucket has not been below from one moment to another; 0 if
// that is too long ago to tell.
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

// lower takes amount out of what the level was since a moment.
func (r *Ring) lower(from, to, amount int64) {
	for k := max(from/stretch, to/stretch-marks+1); r != nil && k <= to/stretch; k++ {
		if m := &r.marks[k%marks]; m.at == k {
			m.n = max(m.n-amount, 0)
		}
	}
}

// sent counts what arrives at a bucket at t, by whole windows.
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

// Recent returns at least what arrived at a bucket in the window before t.
func (r *Ring) Recent(d *Def, t int64) int64 {
	switch t/d.Window - r.last {
	case 0:
		return r.Gone + r.Due
	case 1:
		return r.Gone
	}
	return 0
}

// Rescale goes on to count what arrives at a bucket in another window.
func (r *Ring) Rescale(from, to *Def, t int64) {
	r.Gone, r.Due, r.last = r.Recent(from, t), 0, t/to.Window
}

func (r *Ring) at(slice int64) *int64 { return &r.slot[uint64(slice)%slots] }

// live reports whether a bound still has its slice.
func (r *Ring) live(d *Def, bound int64) bool { return bound/d.Slice >= r.Tail }

const (
	hour     = 3_600_000_000
	cutBy    = 50 // thousandths
	regained = 10 // thousandths an hour
	cutMost  = 500
)

// Odd notes a refusal that the ledger cannot explain: the slack doubles; the
// second within an hour also cuts the capacity by 5%. It reports whether it cut.
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

// Unbrief makes the whole slack count for requests without an answer, for good. See Brief.
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
