package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// model is what responses have shown about how the provider counts. Presets assume a bucket. A response that states
// limit, remaining and reset shows more, because the reset is when all use has come back:
//
//	a bucket         takes (limit - remaining) / limit of a window,
//	a rolling window takes a whole window after its youngest request,
//	a fixed window   takes the time to its reset, which does not move.
//
// Where responses fit a bucket with a longer window, the meter uses that window. Where they fit no bucket, the meter
// becomes a rolling window, which is safe for all three (see [meter.Meter.Turn]).
type model struct {
	meter.Def       // replaces the limit's own if differs is set
	differs   bool  // the provider counts differently from the limit
	proven    bool  // responses fit a bucket and no window of this length
	plain     bool  // stated resets were too early: charges stand for a whole window
	early     bool  // a charge has come back at a stated reset
	doubts    uint8 // consecutive responses that did not fit
	resetAt   int64 // latest stated reset; 0: none
	follows
}

// defOf returns the definition by which a meter counts: the limit's, or that of its model.
func (p *Pool) defOf(in *inst) *meter.Def {
	if in.model == 0 {
		return &p.defs[in.limit]
	}
	m := p.models.At(in.model)
	if !m.differs {
		return &p.defs[in.limit]
	}
	if m.Part != p.parts[in.limit] {
		m.Part = p.parts[in.limit]
	}
	return &m.Def
}

const (
	// resetError is how far a stated reset may be off, in microseconds. Providers round it to a second, and the Date
	// header that it is compared with as well.
	resetError = 2_200_000
	// fineError is resetError for a reset that states a fraction of a second.
	fineError = 50_000
	// enoughDoubts is how many consecutive responses must not fit, where a single one could be a mistake.
	enoughDoubts = 2
	// roundedFrom is the size from which providers round the remaining amount to thousands.
	roundedFrom = 10_000
)

// statement is what a response states about a limit, in terms of a bucket.
type statement struct {
	size        int64 // the provider's whole limit
	used        int64
	least, most int64 // bounds of the missing amount: a bucket states whole units
	in          int64 // microseconds to the reset
	late        int64 // how long the response may have been on its way
	fine        bool  // the reset is precise to a fraction of a second
}

// state reads a statement. It returns false if the statement does not show how the provider counts the limit.
func (p *Pool) state(o *store.Observed, l *store.Limit, in *inst, made, own int64) (statement, bool) {
	s := statement{size: o.Size, used: o.Size - o.Remaining, in: o.ResetIn.Microseconds(), late: p.now - made}
	if o.Whole > 0 {
		s.size = o.Whole
	}
	if o.ResetIn <= 0 || o.Size <= 0 || o.Size > store.MaxAmount || o.Remaining < 0 || o.Remaining >= o.Size ||
		s.size < o.Size || s.size > store.MaxAmount || in.Cap != o.Size {
		return s, false
	}
	if ownBurst(l) {
		return s, false // the provider states rate or burst, and does not say which
	}
	s.fine = fine(o)
	s.least, s.most = max(s.used-1, min(own, s.used)), s.used
	if l.Estimated && s.size >= roundedFrom {
		s.least, s.most = max(s.used-1000, 0), min(s.used+1000, s.size)
	}
	return s, true
}

// fine reports whether a stated reset is precise to a fraction of a second: its dialect says so, or it states a fraction.
func fine(o *store.Observed) bool {
	if o.Slop > 0 {
		return o.Slop.Microseconds() <= fineError
	}
	return o.ResetIn.Microseconds()%second != 0
}

// span returns the earliest and the latest reset that a bucket with this window would state, give or take off. ok is
// false if the bucket's rate cannot be counted exactly.
func (s *statement) span(window, off int64) (from, to int64, ok bool) {
	from, ok = meter.DrainTime(s.size, window, s.least)
	if !ok {
		return 0, 0, false
	}
	to, ok = meter.DrainTime(s.size, window, s.most)
	return from - off - s.late, to + off, ok
}

// off returns how far the stated reset may be off.
func (s *statement) off() int64 {
	if s.fine {
		return fineError
	}
	return resetError
}

// slop returns how much later than stated the reset may be.
func (s *statement) slop() int64 {
	if s.fine {
		return fineError
	}
	return defaultSlop
}

// within reports whether a bucket with this window would state the same reset, give or take off.
func (s *statement) within(window, off int64) bool {
	from, to, ok := s.span(window, off)
	return ok && s.in >= from && s.in <= to
}

// longer returns the first window of a minute, an hour and a day that exceeds than and whose bucket would state the same.
// It returns 0 if there is none, or if the response is too coarse to tell.
func (s *statement) longer(than int64) int64 {
	off := s.off()
	if s.in < 8*off || s.most > s.least+s.least/4 {
		return 0
	}
	window := int64(minute)
	for window <= than || !s.within(window, off) {
		switch window {
		case minute:
			window = 60 * minute
		case 60 * minute:
			window = 24 * 60 * minute
		default:
			return 0
		}
	}
	return window
}

// fit compares a response with the bucket that a meter assumes. If they disagree, it changes how the meter counts. The
// meter has been touched.
func (p *Pool) fit(in *inst, o *store.Observed, made int64, tk *ticket) {
	l := &p.spec.Limits[in.limit]
	if l.Kind != store.Bucket || in.ring == 0 {
		return
	}
	own := tk.cost(int(in.limit))
	s, ok := p.state(o, l, in, made, own)
	if !ok {
		return
	}
	m := p.modelOf(in)
	d := p.defOf(in)
	limit := p.defs[in.limit].Window
	m.tell(&s, p.now)
	switch {
	case d.Kind == meter.Rolling:
		if s.in > d.Window+s.off() { // the provider's window is longer: none forgets later than its length
			p.turn(in, s.in+s.slop(), 0, in.Level)
		} else if theirSize(l) {
			p.shorten(in, m, &s)
		}
	case s.within(d.Window, resetError):
		m.doubts = 0
		p.prove(m, d, &s)
		if theirSize(l) {
			p.quicken(in, m, &s)
		}
	case s.within(limit, resetError):
		p.stretch(in, limit)
	case s.longer(limit) != 0:
		p.stretch(in, s.longer(limit))
	case theirSize(l) && p.quicken(in, m, &s):
	default:
		from, _, _ := s.span(d.Window, resetError)
		// An early reset is no danger, and a reset beyond the window may be a mistake: wait for a second one.
		if early := s.in < from; (early || s.in > limit+resetError) && !m.doubt() || early && l.Size > 0 && !l.SizeIsDefault {
			return
		}
		ours, known := in.MostUsed(d, p.ring(in), p.now, made)
		if !known {
			ours = in.Cap + in.Held
		}
		recent := min(ours-in.Held, p.ring(in).Recent(d, p.now))
		window := limit
		if s.in > limit {
			window = s.in + s.slop()
		}
		p.turn(in, window, s.used, max(recent-s.used, 0))
	}
	m.resetAt = p.now + s.in
}

// doubt counts a response that does not fit, and reports whether there have been enoughDoubts in a row.
func (m *model) doubt() bool {
	m.doubts++
	return m.doubts >= enoughDoubts
}

// prove notes a response that fits a bucket and no window. Right after a request, a rolling window would state a reset a
// whole window away. The resets of a fixed window lie whole windows apart.
func (p *Pool) prove(m *model, d *meter.Def, s *statement) {
	if m.resetAt == 0 || s.in >= d.Window-2*resetError {
		return
	}
	apart := max(p.now+s.in-m.resetAt, m.resetAt-p.now-s.in) % d.Window
	if min(apart, d.Window-apart) > 2*resetError+s.late {
		m.proven = true
	}
}

// modelOf returns the model of a meter, and creates it if needed.
func (p *Pool) modelOf(in *inst) *model {
	if in.model == 0 {
		in.model = p.models.New()
		p.models.At(in.model).Def = p.defs[in.limit]
	}
	return p.models.At(in.model)
}

// stretch gives a bucket another window. Its charges drain at the new rate.
func (p *Pool) stretch(in *inst, window int64) {
	m := p.modelOf(in)
	d := p.defs[in.limit]
	d.Window = window
	if in.Resize(&d, in.Cap, in.Cap) == nil {
		p.ring(in).Rescale(p.defOf(in), &d, p.now)
		m.Def, m.differs, m.doubts, m.proven = d, window != p.defs[in.limit].Window, 0, false
	}
}

// turn makes a meter a rolling window. The provider has seen requests for the amount seen, which may still count. unseen
// is the amount of arrived requests that it may not have seen when it made its response.
func (p *Pool) turn(in *inst, window, seen, unseen int64) {
	l := &p.spec.Limits[in.limit]
	m := p.modelOf(in)
	d := p.defs[in.limit]
	d.Kind, d.Window = meter.Rolling, window
	d.Reslice()
	if p.shared&(1<<in.limit) != 0 && p.defOf(in).Kind != meter.Rolling {
		in.extra = p.paces.New()
	}
	if l.Size > 0 && !l.SizeIsDefault {
		in.Cap = min(in.Cap, l.Size)
	}
	in.Turn(p.defOf(in), &d, p.ring(in), p.now, min(seen, in.Cap), min(unseen, in.Cap))
	m.Def, m.differs, m.doubts = d, true, 0
}

// explained reports whether a provider counts more than the ledger because it counts in another way, and not because
// callers outside Sluice use the limit. If so, the meter counts in a safe way from then on.
func (p *Pool) explained(in *inst, made, used int64) bool {
	d, r := p.defOf(in), p.ring(in)
	if ours, known := in.MostUsed(d, r, p.now, made); !known || used <= ours {
		return false
	}
	if p.mayBeWindow(in, used) {
		p.turn(in, d.Window, used, 0)
		return true
	}
	if in.model == 0 {
		return false
	}
	m := p.models.At(in.model)
	if d.Kind == meter.Bucket || !m.early || m.plain || m.synced {
		return false
	}
	m.plain = true // charges came back too early, at stated resets
	return true
}

// ownBurst reports whether the configuration gives a bucket a burst that differs from its rate. Such a bucket stays a
// bucket: as a window it could not hold requests that the burst allows.
func ownBurst(l *store.Limit) bool { return l.Size > 0 && !l.SizeIsDefault && l.Burst != l.Size }

// mayBeWindow reports whether our own requests explain used if the provider counts a window. It returns false for meters
// that are not buckets, and for those that responses have shown to be one.
func (p *Pool) mayBeWindow(in *inst, used int64) bool {
	d, r := p.defOf(in), p.ring(in)
	if d.Kind != meter.Bucket || r == nil || ownBurst(&p.spec.Limits[in.limit]) || used > r.Recent(d, p.now)+in.Held {
		return false
	}
	if in.model == 0 {
		return true
	}
	m := p.models.At(in.model)
	return !m.proven && (m.resetAt == 0 || m.doubts > 0)
}

// comesBack notes when the provider will have forgotten the use that it states. It applies to meters that became a
// rolling window and whose size comes from the provider.
func (p *Pool) comesBack(in *inst, o *store.Observed, made int64, tk *ticket) {
	if in.model == 0 || o.ResetIn < 0 || o.Size <= 0 || o.Remaining < 0 || o.Remaining > o.Size {
		return
	}
	m, l := p.models.At(in.model), &p.spec.Limits[in.limit]
	if !m.differs || m.plain || m.Kind != meter.Rolling || !theirSize(l) {
		return
	}
	unseen := max(in.Level-(o.Size-o.Remaining), 0)
	if tk != nil {
		unseen = p.unseen(in, made, tk.arrived(int(in.limit), l))
	}
	s := statement{fine: fine(o)}
	if in.Forget(p.defOf(in), p.ring(in), p.now, p.now+o.ResetIn.Microseconds()+s.slop(), tk.arrived(int(in.limit), l), unseen) {
		m.early = true
	}
}

// backWithin returns how long a request counts in a rolling window by what responses state: no longer than the longest
// time to a reset, although the window that the meter assumes may be longer.
func (p *Pool) backWithin(in *inst, d *meter.Def) int64 {
	if in.model == 0 || d.Kind != meter.Rolling {
		return d.Window
	}
	m := p.models.At(in.model)
	if !m.differs || m.plain || m.refused > 0 || m.most <= 0 {
		return d.Window
	}
	return min(d.Window, m.most+defaultSlop)
}
