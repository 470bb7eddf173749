package pool

import (
	"github.com/sluicehq/sluice/store"
)

// A provider's window can be shorter than the preset assumes. Then its responses state that little is used, or that
// everything is back soon, while the ledger still counts it. docs/algorithms.md says why it is safe to believe them.

// follows is what responses have shown about limits that come back sooner than assumed.
type follows struct {
	lastIn  int64 // the latest statement: microseconds to the reset,
	late    int64 // how long it may have been on its way,
	lastOff int64 // and how far off its reset may be
	most    int64 // longest stated time to the reset
	isBkt   bool  // resets follow what is missing, as only those of a bucket do
	quick   uint8 // consecutive responses that fit a shorter window
	quickAt int64 // time of the first of them
	best    int64 // the longest window that one of them allows
	agreed  uint8 // responses that state less use than the ledger has
	synced  bool  // the ledger was lowered to what a response stated
	refused uint8 // refusals since, which nothing else explains

	free     uint8 // responses in a row that contradict the ledger, see contradicts
	freeLeft int64 // what the latest of them stated: the remaining amount,
	freeIn   int64 // and the time in which everything is back
}

const (
	// agreeing is how many responses must agree before the ledger follows them.
	agreeing = 3
	// agreeingAgain is the same after a refusal.
	agreeingAgain = 30
	// mostRefused is how many refusals end it for good.
	mostRefused = 2
	// freeFrom is how many responses in a row must contradict the ledger before people are told.
	freeFrom = 5
	// leastWindow is the shortest window that is learned.
	leastWindow = 250_000
)

// theirSize reports whether the provider states the size of a limit, and the configuration does not.
func theirSize(l *store.Limit) bool { return l.Size == 0 || l.SizeIsDefault }

// tell compares a statement with the one before. Right after a request, a rolling window states the same time to its
// reset whatever is missing. The resets of a fixed window lie whole windows apart, and a window is at least as long as
// the longest time to a reset. So if both the time and the reset differ, the latter by less, the provider has a bucket.
func (m *model) tell(s *statement, now int64) {
	off := 2*max(s.off(), m.lastOff) + max(s.late, m.late)
	m.most = max(m.most, s.in)
	if m.resetAt != 0 {
		apart, moved := s.in-m.lastIn, now+s.in-m.resetAt
		if max(apart, -apart) > off && max(moved, -moved) > off && max(moved, -moved) < m.most-off {
			m.isBkt = true
		}
	}
	m.lastIn, m.late, m.lastOff = s.in, s.late, s.off()
}

// quicken gives a bucket a shorter window if enough responses in a row show that it refills faster. It reports whether
// this response does.
func (p *Pool) quicken(in *inst, m *model, s *statement) bool {
	d := p.defOf(in)
	if !m.isBkt || m.refused > 0 || s.least <= 0 || s.size > maxProduct/(s.in+s.off()) {
		m.quick = 0
		return false
	}
	window := max((s.in+s.off())*s.size/s.least+1, leastWindow)
	if window >= d.Window-d.Window/50 {
		m.quick = 0
		return false
	}
	if m.quick == 0 {
		m.best = 0
	}
	m.best = max(m.best, window)
	if m.quick++; m.quick >= agreeing {
		m.quick = 0
		p.stretch(in, m.best)
	}
	return true
}

// maxProduct bounds products: values up to it are exact in a double.
const maxProduct = 1 << 52

// shorten gives a rolling window half its length or less if responses state for long enough that everything is back
// in less than half of that. So its slices become finer, and the charge of a request whose response states nothing comes
// back sooner. What a response has stated decides about all others, see comesBack.
func (p *Pool) shorten(in *inst, m *model, s *statement) {
	d := p.defOf(in)
	window := max(2*(s.in+s.off()), leastWindow)
	if window > d.Window/2 || m.refused > 0 || m.plain || p.header.slowerThan(d, p.ring(in)) {
		m.quick = 0
		return
	}
	if m.quick == 0 {
		m.best, m.quickAt = 0, p.now
	}
	m.best = max(m.best, window)
	if m.quick < 100 {
		m.quick++
	}
	if m.quick >= agreeing && p.now-m.quickAt >= 2*m.best {
		m.quick = 0
		p.turn(in, m.best, in.Level, 0)
	}
}

// follow lowers the ledger to what a response states, if the provider counts less. made is when its request was granted:
// the provider may not have seen what arrived since, nor what is on its way.
func (p *Pool) follow(in *inst, o *store.Observed, made int64, tk *ticket) {
	l := &p.spec.Limits[in.limit]
	d, r := p.defOf(in), p.ring(in)
	if in.model == 0 || r == nil || l.Kind != store.Bucket || !theirSize(l) || ownBurst(l) || o.Size != in.Cap || o.ResetIn < 0 {
		return
	}
	m := p.models.At(in.model)
	if m.plain || m.refused >= mostRefused {
		return
	}
	r.Follow(p.now, p.header.median/8)
	own := tk.arrived(int(in.limit), l)
	unseen := p.unseen(in, made, own)
	if unseen < 0 {
		return
	}
	used := max(o.Size-o.Remaining, own)
	if l.Estimated && o.Size >= roundedFrom {
		used += 1000
	}
	if in.Level <= used+unseen {
		return
	}
	need := uint8(agreeing)
	if m.refused > 0 {
		need = agreeingAgain
	}
	if m.agreed < need {
		m.agreed++
		return
	}
	in.Sync(d, r, p.now, used+unseen)
	m.synced = true
}

// contradicts counts responses in a row which state that at least three quarters of a limit are free while at least three
// quarters of it have arrived by the ledger. Where follow does not resolve that, because the configuration states the size
// or refusals have spoken against it, doctor tells.
func (p *Pool) contradicts(in *inst, o *store.Observed, whole int64) {
	if in.Level < whole-whole/4 || whole-o.Remaining > whole/4 || whole < 2 || o.ResetIn < 0 {
		if in.model != 0 {
			p.models.At(in.model).free = 0
		}
		return
	}
	m := p.modelOf(in)
	m.free = min(m.free+1, 100)
	m.freeLeft, m.freeIn = o.Remaining, o.ResetIn.Microseconds()
}

// unseen returns the most that has arrived since made, besides own, which arrived now. It returns -1 if that is not known.
func (p *Pool) unseen(in *inst, made, own int64) int64 {
	n, known := p.ring(in).Unseen(made)
	if !known {
		return -1
	}
	return max(n-own, 0)
}

// arrived returns the amount of a ticket that has arrived with its answer. A nil ticket has none.
func (tk *ticket) arrived(limit int, l *store.Limit) int64 {
	if l.Late {
		return 0
	}
	return tk.cost(limit)
}

// unfollow ends what follow, quicken and shorten have learned after a refusal that nothing else explains: the limit's own
// window counts again. It returns false if they have learned nothing.
func (p *Pool) unfollow(in *inst) bool {
	if in.model == 0 {
		return false
	}
	m := p.models.At(in.model)
	window := p.defs[in.limit].Window
	if !m.synced && p.defOf(in).Window >= window {
		return false
	}
	m.synced, m.isBkt, m.agreed, m.quick = false, false, 0, 0
	m.refused++
	p.turn(in, window, 0, in.Cap)
	return true
}
