package pool

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// cutMember is a member with a third of one limit. It is heard last at 0 s, and its lease ends at 300 s.
type cutMember struct {
	*testing.T
	p *Pool
	s *Share
	n uint64
}

const zero = store.Time(1_800_000_000_000_000)

func at(d time.Duration) store.Time { return zero.Add(d) }

func newCutMember(t *testing.T, l store.Limit, from time.Duration) *cutMember {
	t.Helper()
	l.Name, l.Unit = "limit", "u"
	spec := classesSpec()
	spec.Limits = []store.Limit{l}
	p, err := New(spec, at(from))
	if err != nil {
		t.Fatal(err)
	}
	p.Remember(func(session uint64) bool { return session == 1 })
	return &cutMember{T: t, p: p}
}

func (m *cutMember) want(ttl time.Duration, amount int64) store.Op {
	m.n++
	return store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1, N: m.n}, Agent: "a", TTL: ttl, Amounts: []store.Amount{{Unit: "u", N: amount}}}
}

// charge has the pool grant a request of the member; it is answered and closed at over, if that is later.
func (m *cutMember) charge(granted, over time.Duration, ttl time.Duration, amount int64) store.ID {
	op := m.want(ttl, amount)
	m.p.Apply(at(granted), []store.Op{op})
	if over > granted {
		m.p.Apply(at(over), arrives(op.ID))
	}
	return op.ID
}

func (m *cutMember) cutOff(now time.Duration, unsure ...store.ID) {
	m.Helper()
	c := CutOff{Share: 3, Heard: zero, End: at(300 * time.Second), Mine: func(session uint64) bool { return session == 1 }, Unsure: map[store.ID]bool{}}
	for _, id := range unsure {
		c.Unsure[id] = true
	}
	var err error
	if m.s, err = m.p.CutOff(at(now), &c); err != nil {
		m.Fatal(err)
	}
}

// asks checks when a request that waits is granted; 0: not before the log is back.
func (m *cutMember) asks(now, ttl time.Duration, amount int64, want time.Duration) store.ID {
	m.Helper()
	op := m.want(ttl, amount)
	op.Wait = -1
	m.s.Do(at(now), &op)
	got := now
	for n := 0; op.Result.State == store.Waiting && n < 1000; n++ {
		_, next := m.s.Serve(at(got))
		if got = next.Sub(zero); next == 0 {
			got = 0
			break
		}
		poll := store.Op{Kind: store.OpPoll, ID: op.ID}
		m.s.Serve(next)
		if m.s.Do(next, &poll); poll.Result.State == store.Granted {
			break
		}
	}
	if want == 0 && got != 0 || got < want || got > want+want/100 {
		m.Errorf("a request for %d at %v is granted at %v, want %v", amount, now, got, want)
	}
	return op.ID
}

func aMinute(size int64) store.Limit {
	return store.Limit{Kind: store.Rolling, Size: size, Window: time.Minute, Slack: 6 * time.Second} // at most 7.5 s
}

func TestAShareUsesOwnChargesAgainAtOnceAndIsWholeAfterAWindow(t *testing.T) {
	t.Parallel()
	m := newCutMember(t, aMinute(9), -time.Minute)
	m.charge(-40*time.Second, -39*time.Second, time.Minute, 1)
	m.charge(-30*time.Second, -29*time.Second, time.Minute, 1)
	m.cutOff(time.Second)
	m.asks(time.Second, time.Second, 1, 21*time.Second) // when its first charge comes back
	m.asks(21*time.Second, time.Second, 1, 31*time.Second)
	m.asks(31*time.Second, time.Second, 1, 72500*time.Millisecond) // the third: five seconds, a window and the longest slack
	m.asks(75*time.Second, time.Second, 4, 0)
}

func TestAShareWithRoomGrantsOnceOthersLeaveItAlone(t *testing.T) {
	t.Parallel()
	m := newCutMember(t, aMinute(9), -time.Minute)
	m.charge(-59*time.Second, -58*time.Second, time.Minute, 3) // others may have it by the time it starts
	m.cutOff(time.Second)
	m.asks(time.Second, time.Second, 1, 72500*time.Millisecond)
	m = newCutMember(t, store.Limit{Kind: store.Concurrency, Size: 9}, 0)
	id := m.charge(time.Second, 0, 100*time.Second, 1)
	m.cutOff(2 * time.Second)
	m.s.Know(at(3*time.Second), &store.Op{Kind: store.OpClose, ID: id})
	m.asks(3*time.Second, 10*time.Second, 1, 5*time.Second)
}

// An operation whose fate is unknown may have given a charge back to the others.
func TestAShareDoesNotCountOnRequestsThatMayBeOver(t *testing.T) {
	t.Parallel()
	m := newCutMember(t, store.Limit{Kind: store.Concurrency, Size: 9}, 0)
	id := m.charge(time.Second, 0, 100*time.Second, 1)
	m.cutOff(2*time.Second, id)
	m.s.Know(at(3*time.Second), &store.Op{Kind: store.OpClose, ID: id})
	m.asks(3*time.Second, 10*time.Second, 1, 0)
}

func TestPlacesOfAShareAreForRequestsThatEndInTime(t *testing.T) {
	t.Parallel()
	m := newCutMember(t, store.Limit{Kind: store.Concurrency, Size: 9}, 0)
	id := m.charge(time.Second, 0, 100*time.Second, 1)
	m.charge(time.Second, 0, 3*time.Second, 1) // it ends before the start: others may have its place
	m.cutOff(2 * time.Second)
	m.asks(6*time.Second, 10*time.Second, 1, 101*time.Second)
	m.s.Know(at(102*time.Second), &store.Op{Kind: store.OpClose, ID: id})
	m.asks(102*time.Second, 199*time.Second, 1, 0)
}

func TestABucketOfAShareIsFullWhenOthersHaveArrived(t *testing.T) {
	t.Parallel()
	m := newCutMember(t, store.Limit{Kind: store.Bucket, Size: 3, Burst: 9, Window: time.Second}, 0) // slack 1 s
	m.cutOff(0)
	m.asks(0, time.Second, 1, 7*time.Second) // one a second of its own from 6 s on
	m.asks(0, time.Second, 4, 0)
}

func TestAShareHasNothingOf(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]store.Limit{
		"a long window":            {Kind: store.Rolling, Size: 9, Window: time.Hour},
		"a bucket like that":       {Kind: store.Bucket, Size: 1, Burst: 11, Window: time.Minute},
		"a strict one":             {Kind: store.Rolling, Size: 9, Window: time.Second, Guard: store.GuardStrict},
		"less than one":            {Kind: store.Rolling, Size: 2, Window: time.Second},
		"a size that nobody knows": {Kind: store.Rolling, Window: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newCutMember(t, l, 0)
			m.cutOff(0)
			m.asks(200*time.Second, time.Second, 1, 0)
		})
	}
}
