package proof_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// premise is what the delays of a trace keep to.
type premise uint8

const (
	withinSlack premise = iota // requests arrive at most the slack after their grant
	withinTTL                  // requests arrive before the ticket's time to live is over
	untruncated                // requests arrive whenever they do
)

// fate is what becomes of a caller.
type fate uint8

const (
	lives fate = iota
	cancels
	spends           // closes its ticket as spent when it has sent
	closesUnanswered // its answer is lost, it closes when the work is over
	mute             // dies when it has sent
	diesHolding
	diesWaiting
	neverCollects
)

var fateNames = [...]string{"lives", "cancels", "spends", "closes unanswered", "mute", "dies holding", "dies waiting", "never collects"}

const most = 4 // limits of a trace

// plan is one request, drawn beforehand, so that leaving out others does not change it.
type plan struct {
	at         store.Time
	agent      int
	class      int
	model      int
	cost, used [most]int64 // charged, and what the provider counts in the end
	wait       time.Duration
	alive      time.Duration
	fate       fate
	collect    store.Time // from the decision to asking for it
	reply      store.Time // from the grant to the caller
	think      store.Time // until it writes
	request    store.Time // until it arrives
	header     store.Time // until the provider begins to answer
	work       store.Time // until the provider is done
	back       store.Time // of an answer to the store
	tail       store.Time // from the end of an answer to the close
	spend      store.Time // from writing to the close of a spent ticket
	atLast     bool       // arrives in the last moment that the premise allows
	silent     bool       // the answer states nothing
	full       bool       // the answer states size and remaining, not only the reset
	throttled  bool       // refused by a limit that nobody knows of
	twice      bool       // operations are repeated, as after a lost reply
}

// trace is a pool, a provider and what its callers will do.
type trace struct {
	seed     uint64
	spec     store.Spec
	premise  premise
	phase    [most]store.Time // of fixed windows
	clock    store.Time       // the provider's, ahead of the store's
	ttl      time.Duration
	unjudged [most]bool // overrun by what nobody could know
	batch    bool       // who asks in the same moment does so in one step
	numbers  bool       // callers number their tickets themselves
	stated   bool       // answers state the resets of fixed windows
	judging  bool       // a refusal is a failure
	quick    bool       // headers stay quick
	longest  store.Time // longest wait that the limits can explain
	plans    []plan
}

var (
	agentNames = [...]string{"ann", "ben", "cid", "dee", "eve"}
	modelNames = [...]string{"big", "small"}
)

// slack is the smallest arrival slack of the limits.
func (tr *trace) slack() time.Duration { return tr.slackOf(nil) }

// slackOf is the smallest arrival slack of the limits that a plan takes from, nil for
// all.
func (tr *trace) slackOf(p *plan) time.Duration {
	least := 30 * time.Second
	for i, l := range tr.spec.Limits {
		if l.Kind == store.Concurrency || p != nil && p.cost[i] == 0 {
			continue
		}
		s := l.Slack
		if s == 0 {
			s = min(max(l.Window*15/1000, time.Second), 30*time.Second)
		}
		least = min(least, s)
	}
	return least
}

// briefOf is how long a request without an answer has to arrive once its ticket is spent.
func (tr *trace) briefOf(p *plan) time.Duration {
	least := tr.slackOf(p)
	for i, l := range tr.spec.Limits {
		if l.Kind == store.Concurrency || p.cost[i] == 0 || l.Slack != 0 {
			continue
		}
		back := l.Window
		if l.Kind == store.Bucket {
			back = time.Duration(float64(l.Window) * float64(l.Burst) / float64(l.Size))
		}
		least = min(least, max(back*3/10, 250*time.Millisecond))
	}
	return least
}

// shape is what the traces of a test have in common.
type shape struct {
	guard   store.Guard
	premise premise
	kinds   []store.Kind // nil: all
	quick   bool         // headers stay quick
	spent   bool         // some tickets are spent
	plain   bool         // nobody dies, cancels or dawdles
	judging bool
	request sim.Delay // untruncated: of requests
	slow    bool      // all headers are slow
}

// draw makes a trace.
func (sh shape) draw(seed uint64) *trace {
	rng := rand.New(rand.NewPCG(seed, 0))
	tr := &trace{
		seed: seed, premise: sh.premise, quick: sh.quick, judging: sh.judging,
		clock: store.Time(rng.Int64N(3_000_000)), batch: rng.IntN(2) == 0, numbers: rng.IntN(2) == 0, stated: rng.IntN(4) > 0,
	}
	tr.spec = store.Spec{
		Name: "p", Order: store.Order(rng.IntN(3)), MaxWaiting: 100_000,
		Classes:  []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: 8 * time.Second},
	}
	for i := range []int{1, 1, 1, 2, 2, 3, 4}[rng.IntN(7)] {
		tr.spec.Limits = append(tr.spec.Limits, sh.limit(rng, tr, i))
	}
	slack := tr.slack()
	tr.ttl = max([]time.Duration{3 * time.Second, 15 * time.Second, time.Minute, 10 * time.Minute}[rng.IntN(4)], slack)
	if sh.premise == withinTTL && !sh.quick {
		tr.ttl = logUniform(rng, time.Second, 2*time.Minute)
	}
	overrun := rng.IntN(3) == 0
	for i, l := range tr.spec.Limits {
		tr.unjudged[i] = l.Late && overrun
	}
	regime := rng.IntN(4)
	refusals := !sh.plain && rng.IntN(6) == 0
	n := 5 + rng.IntN(45)
	span := []time.Duration{time.Millisecond, time.Second, tr.spec.Limits[0].Window, 3 * time.Minute, 4 * tr.spec.Limits[0].Window}[rng.IntN(5)]
	for i := range n {
		rng := rand.New(rand.NewPCG(seed, uint64(i)+1))
		p := sh.plan(rng, tr, slack, overrun)
		p.at = store.Time(rng.Int64N(span.Microseconds() + 1))
		if span == time.Millisecond {
			p.at = 0
		}
		slow := regime == 1 || regime == 2 && i/8%2 == 1 || regime == 3 && rng.IntN(2) == 0
		if sh.slow || slow && !sh.quick {
			p.header = store.Time(float64(slack.Microseconds()) * (2.2 + 4*rng.Float64()))
		}
		p.work = p.header + store.Time(rng.Int64N(2_000_000))
		p.throttled = refusals && rng.IntN(8) == 0
		tr.plans = append(tr.plans, p)
	}
	tr.longest = tr.explained(n, span)
	return tr
}

func (sh shape) limit(rng *rand.Rand, tr *trace, i int) store.Limit {
	l := store.Limit{
		Name: fmt.Sprintf("l%d", i), Kind: store.Kind(rng.IntN(4)), Unit: "u", Guard: sh.guard,
		Size:   int64(math.Exp(rng.Float64() * math.Log(201))),
		Window: logUniform(rng, time.Second, 10*time.Minute),
	}
	if sh.kinds != nil {
		l.Kind = sh.kinds[rng.IntN(len(sh.kinds))]
	}
	switch rng.IntN(6) {
	case 0:
		l.Per = store.PerAgent
	case 1:
		l.Per = store.PerModel
	}
	if rng.IntN(5) == 0 {
		l.Slack = logUniform(rng, 100*time.Millisecond, 10*time.Second)
	}
	l.Late = l.Kind != store.Concurrency && !sh.plain && rng.IntN(7) == 0
	switch l.Kind {
	case store.Bucket:
		l.Burst = int64(math.Exp(rng.Float64() * math.Log(201)))
	case store.Fixed:
		tr.phase[i] = sim.Epoch + store.Time(rng.Int64N(l.Window.Microseconds()))
		if rng.IntN(3) == 0 { // configured, a second or so off
			l.Reset = tr.phase[i] + store.Time(rng.Int64N(2_400_001)-1_200_000)
		}
	case store.Concurrency:
		l.Window = 0
	}
	return l
}

func (sh shape) plan(rng *rand.Rand, tr *trace, slack time.Duration, overrun bool) plan {
	p := plan{agent: rng.IntN(len(agentNames)), class: rng.IntN(3), model: rng.IntN(len(modelNames)), wait: -1, full: rng.IntN(2) == 0}
	p.costs(rng, tr, overrun)
	short := func() store.Time { return store.Time(rng.Int64N(200_000)) }
	p.reply, p.back, p.tail, p.header, p.spend = short()/4, short(), short(), short(), short()
	if rng.IntN(6) == 0 {
		p.back = store.Time(rng.Int64N(5_000_000)) // what it states is old when it comes
	}
	us := slack.Microseconds()
	switch rng.IntN(10) {
	case 0:
	case 1, 2, 3, 4:
		p.request = short()
	case 5, 6, 7:
		p.request = store.Time(rng.Int64N(us + 1))
	default:
		p.atLast = true
	}
	if sh.premise == withinTTL && rng.IntN(3) > 0 {
		p.request, p.atLast = short(), false
	} else if sh.premise == withinTTL && rng.IntN(2) == 0 {
		p.request = store.Time(rng.Int64N(tr.ttl.Microseconds() + 1))
	}
	if sh.premise == untruncated {
		p.request, p.atLast = drawn(rng, sh.request), false
	}
	if rng.IntN(6) == 0 {
		p.think = store.Time(rng.Int64N(3 * us)) // often too long: the ticket is stale by then
	}
	p.silent = rng.IntN(3) == 0
	if sh.plain {
		return p
	}
	p.twice = rng.IntN(10) == 0
	switch rng.IntN(20) {
	case 0:
		p.fate = cancels
	case 1:
		p.fate = closesUnanswered
	case 2:
		p.fate = mute
	case 3:
		p.fate = diesHolding
	case 4:
		p.fate, p.alive = diesWaiting, tr.recovery()/4
	case 5:
		p.fate = neverCollects
	case 6:
		p.collect = store.Time(rng.Int64N(1_500_000)) // some come too late for their grant
	case 7:
		p.alive = tr.recovery() / 4
	case 8:
		p.wait = time.Duration(rng.Int64N(int64(20 * time.Second)))
	case 9, 10:
		if sh.spent && !tr.places(&p) {
			p.fate = spends
		}
	}
	return p
}

// places reports that a plan takes a place, which a spent ticket gives back though the
// request is under way.
func (tr *trace) places(p *plan) bool {
	for i, l := range tr.spec.Limits {
		if l.Kind == store.Concurrency && p.cost[i] > 0 {
			return true
		}
	}
	return false
}

func (p *plan) costs(rng *rand.Rand, tr *trace, overrun bool) {
	must := rng.IntN(len(tr.spec.Limits))
	for i, l := range tr.spec.Limits {
		capacity := l.Size
		if l.Kind == store.Bucket {
			capacity = l.Burst
		}
		switch c := rng.IntN(20); {
		case c < 3 && i != must:
		case c < 13:
			p.cost[i] = 1
		case c < 19:
			p.cost[i] = 1 + rng.Int64N(capacity/4+1)
		default:
			p.cost[i] = 1 + rng.Int64N(capacity)
		}
		p.cost[i] = min(p.cost[i], capacity)
		p.used[i] = p.cost[i]
		if l.Kind != store.Concurrency && rng.IntN(3) == 0 {
			p.used[i] = rng.Int64N(p.cost[i] + 1) // settled downward in the end
		}
		if l.Late && p.cost[i] > 0 {
			p.used[i] = rng.Int64N(p.cost[i] + 1)
			if overrun && rng.IntN(2) == 0 {
				p.used[i] = p.cost[i] + rng.Int64N(capacity)
			}
		}
	}
}

// explained is the longest wait that the limits can explain: as if everybody needed
// the whole of every limit, one after the other, and never answered.
func (tr *trace) explained(n int, span time.Duration) store.Time {
	return store.Time((span + time.Duration(n)*(3*tr.recovery()+tr.ttl)).Microseconds())
}

// recovery is how long all limits together take to give back everything.
func (tr *trace) recovery() time.Duration {
	sum := 8 * time.Second
	for _, l := range tr.spec.Limits {
		if l.Kind == store.Bucket {
			sum += time.Duration(float64(l.Window) * float64(l.Burst) / float64(l.Size))
		} else {
			sum += l.Window
		}
	}
	return sum
}

func logUniform(rng *rand.Rand, lo, hi time.Duration) time.Duration {
	return time.Duration(float64(lo) * math.Exp(rng.Float64()*math.Log(float64(hi)/float64(lo)))).Truncate(time.Microsecond)
}

func drawn(rng *rand.Rand, d sim.Delay) store.Time {
	return store.Time(float64(d.Median.Microseconds()) * math.Exp(d.Sigma*rng.NormFloat64()))
}

// shrink leaves out requests while what remains still fails.
func (tr *trace) shrink() *trace {
	fails := func(plans []plan) bool {
		t := *tr
		t.plans = plans
		return play(&t, nil).failure != nil
	}
	best := tr.plans
	for size := len(best) / 2; size > 0; {
		smaller := false
		for from := 0; from+size <= len(best); {
			rest := append(append([]plan(nil), best[:from]...), best[from+size:]...)
			if fails(rest) {
				best, smaller = rest, true
			} else {
				from += size
			}
		}
		if !smaller || size > len(best) {
			size /= 2
		}
	}
	t := *tr
	t.plans = best
	return &t
}

func (tr *trace) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, premise %d, ttl %v, order %v, clock %v\n", tr.seed, tr.premise, tr.ttl, tr.spec.Order, tr.clock.Sub(0))
	for i, l := range tr.spec.Limits {
		fmt.Fprintf(&b, "  %s: %v size %d burst %d window %v guard %v slack %v late %t per %d reset %v phase %v\n",
			l.Name, l.Kind, l.Size, l.Burst, l.Window, l.Guard, l.Slack, l.Late, l.Per, since(l.Reset), since(tr.phase[i]))
	}
	for i := range tr.plans {
		p := &tr.plans[i]
		fmt.Fprintf(&b, "  #%d at %v %s/%d/%s cost %v used %v %s wait %v collect %v reply %v think %v request %v header %v work %v back %v last %t twice %t\n",
			i, p.at.Sub(0), agentNames[p.agent], p.class, modelNames[p.model], p.cost, p.used, fateNames[p.fate], p.wait, p.collect.Sub(0), p.reply.Sub(0),
			p.think.Sub(0), p.request.Sub(0), p.header.Sub(0), p.work.Sub(0), p.back.Sub(0), p.atLast, p.twice)
	}
	return b.String()
}
