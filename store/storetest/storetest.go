// Package storetest is the conformance suite for stores. It knows only the contract in package store.
//
// An implementation runs it from a test of its own:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			clock := storetest.NewClock(storetest.Start)
//			s := mystore.New(mystore.WithClock(clock))
//			return storetest.Harness{Store: s, Advance: clock.Advance}
//		})
//	}
//
// # Requirements for an implementation
//
// Time. The store's clock moves only in Advance. Everything that falls due on the way happens at its own time and
// not at the end. A waiter that a bucket admits after 200 ms is granted at exactly that microsecond, even if Advance
// was called with a minute. When Advance returns, every due call of a Watch function has returned too, including
// those that an earlier Apply caused. Advance(0) waits for these.
//
// Rounding. Buckets are exact. A rolling window gives a charge back a window after the end of the slice that its
// bound lies in: at most 1/256 of the window late, never early. Tickets and waiting entries expire within 100 ms
// after their time, never early.
//
// Wake-ups. Every ticket that was left waiting and is then decided, either way, is reported to the Watch function of
// the session that asked for it, and to no other. A ticket whose decision was in the result of an operation is not
// reported. A grant that is not collected within one second goes back.
//
// Ids. An operation whose ID has no session stands for the session of the handle it was applied through.
package storetest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Start is a start time for fake clocks. It is an odd number, so that nothing is aligned with it by accident.
const Start store.Time = 1_700_000_000_123_457

// Harness is a fresh store with its own clock.
type Harness struct {
	Store store.Store
	// Advance moves the store's clock, step by step through everything that falls due. See the package comment.
	Advance func(d time.Duration)
	// RemindsLate is set if the store may be late to report that a ticket has lapsed, when it has reported that
	// ticket before. The first report of a ticket must always be in time.
	RemindsLate bool
}

// Run runs the suite. It calls open for every test.
func Run(t *testing.T, open func(t *testing.T) Harness) { run(t, open, false) }

// RunVirtual is Run for stores that take their time from package time. Each test is a bubble of testing/synctest, and open is
// called inside it.
func RunVirtual(t *testing.T, open func(t *testing.T) Harness) { run(t, open, true) }

func run(t *testing.T, open func(t *testing.T) Harness, virtual bool) {
	for _, g := range []struct {
		name  string
		tests func(*suite)
	}{
		{"Kinds", kinds},
		{"Several", several},
		{"Scopes", scopes},
		{"Unknown", unknownSizes},
		{"Crowd", crowds},
		{"Invalid", invalid},
		{"Guard", guards},
		{"Settle", settling},
		{"Shares", shares},
		{"Turns", turns},
		{"Claims", claims},
		{"Own", ownLimits},
		{"Waiting", waiting},
		{"Watch", watching},
		{"Life", life},
		{"Renew", renewing},
		{"Again", again},
		{"Pause", pauses},
		{"GateScope", gateScopes},
		{"Probe", probes},
		{"LongPause", longPauses},
		{"Ramp", ramps},
		{"Odd", unexplained},
		{"Observe", observations},
		{"Members", members},
		{"Snapshot", snapshots},
		{"Leaks", leaks},
		{"Light", lights},
		{"Stock", stockShares},
		{"Reserve", reserves},
		{"Pace", pacing},
		{"Plan", planWindows},
		{"Breaker", breakers},
		{"Leases", leasing},
		{"Held", held},
		{"Slots", slotted},
		{"Launch", launching},
		{"History", remembering},
		{"Others", others},
		{"Force", forcing},
		{"Spent", spending},
		{"Keep", keeping},
		{"Look", looking},
		{"List", listing}, {"Secret", secrets},
		{"Touch", inTouch},
		{"Forget", forgotten},
		{"Trouble", troubles}, {"Rejections", rejecting},
		{"Restate", restating}, {"Sizes", sizes},
		{"Gone", goneSessions},
	} {
		t.Run(g.name, func(t *testing.T) { g.tests(&suite{t, open, virtual}) })
	}
}

// suite runs the tests of one group.
type suite struct {
	t       *testing.T
	open    func(t *testing.T) Harness
	virtual bool
}

// test runs one test on its own pool.
func (s *suite) test(name string, spec store.Spec, f func(m *member)) {
	test := func(t *testing.T) {
		h := s.open(t)
		t.Cleanup(func() {
			if err := h.Store.Close(); err != nil {
				t.Errorf("closing the store: %v", err)
			}
		})
		f(join(t, h, spec))
	}
	s.t.Run(name, func(t *testing.T) {
		if s.virtual {
			synctest.Test(t, test)
		} else {
			test(t)
		}
	})
}

// spec describes a pool with the usual three classes.
func spec(limits ...store.Limit) store.Spec {
	for i := range limits {
		if limits[i].Name == "" {
			limits[i].Name = string(rune('a' + i))
		}
		if limits[i].Unit == "" {
			limits[i].Unit = "requests"
		}
	}
	return store.Spec{
		Name:       "pool",
		Limits:     limits,
		Classes:    []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		MaxWaiting: 10_000,
		Throttle:   store.Backoff{Start: time.Minute, Factor: 2, Cap: 15 * time.Minute},
		Overload:   store.Backoff{Start: 5 * time.Second, Factor: 2, Cap: time.Minute},
	}
}

// The limits below have no guard, so that a charge counts from its grant on.

func bucket(size, burst int64) store.Limit {
	return store.Limit{Kind: store.Bucket, Size: size, Burst: burst, Window: time.Second, Guard: store.GuardOff}
}

func rolling(size int64, window time.Duration) store.Limit {
	return store.Limit{Kind: store.Rolling, Size: size, Window: window, Guard: store.GuardOff}
}

func slots(size int64) store.Limit {
	return store.Limit{Kind: store.Concurrency, Size: size, Guard: store.GuardOff}
}

// plenty returns a limit that never binds in these tests.
func plenty() store.Limit { return rolling(1_000_000, time.Minute) }

func per(l store.Limit, scope store.Scope) store.Limit {
	l.Per = scope
	return l
}

func guarded(l store.Limit, g store.Guard) store.Limit {
	l.Guard = g
	return l
}

// join opens a pool as one more member.
func join(t *testing.T, h Harness, spec store.Spec) *member {
	t.Helper()
	p, err := h.Store.Pool(context.Background(), spec)
	if err != nil {
		t.Fatalf("opening the pool: %v", err)
	}
	m := &member{T: t, harness: h, pool: p, limits: spec.Limits, streams: map[store.ID]*stream{}, began: p.Now()}
	p.Watch(m.tell)
	return m
}
