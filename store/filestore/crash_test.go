//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

// A script of steps is carried out by processes that end in the middle of it, each at a chosen point.
// After every end the state must be that of the same script in memory, up to the last step that was
// acknowledged or one more.

// stillClock shows what it is set to. Nothing ever falls due by itself.
type stillClock struct{ at atomic.Int64 }

func (c *stillClock) Now() store.Time { return store.Time(c.at.Load()) }
func (*stillClock) Boot() [16]byte    { return [16]byte{1} }

// Wall makes the pool's clock the same as this one.
func (c *stillClock) Wall() store.Time { return c.Now() }
func (c *stillClock) AfterFunc(time.Duration, func()) interface {
	Reset(time.Duration)
	Stop()
} {
	return noTimer{}
}

type noTimer struct{}

func (noTimer) Reset(time.Duration) {}
func (noTimer) Stop()               {}

// scripted is the process and session that scripts speak for: nobody's, so that any can go on.
const (
	scripted        = 77
	scriptedSession = scripted<<16 | 1
)

// scriptStep either moves the clock or does something, never both: so a process that looks after
// a crash changes nothing.
type scriptStep struct {
	at  store.Time
	ops []store.Op
}

func scriptSpec() store.Spec {
	return specOf(
		store.Limit{Kind: store.Rolling, Size: 40, Window: time.Second, Guard: store.GuardOff},
		store.Limit{Kind: store.Bucket, Size: 30, Burst: 20, Window: time.Second},
		store.Limit{Kind: store.Concurrency, Size: 12},
		store.Limit{Kind: store.Rolling, Size: 5, Window: time.Second, Per: store.PerAgent, Guard: store.GuardOff},
	)
}

// script draws steps. Some are so large that the journal is soon full.
func script(seed uint64, steps int) []scriptStep {
	r := rand.New(rand.NewPCG(seed, 1))
	at, n := storetest.Start, uint64(0)
	all := make([]scriptStep, 0, steps)
	for len(all) < steps {
		if r.IntN(3) == 0 {
			at = at.Add(time.Duration(r.IntN(200_000)) * time.Microsecond)
			all = append(all, scriptStep{at: at})
			continue
		}
		ops := make([]store.Op, 1+r.IntN(4))
		for i := range ops {
			id := store.ID{Session: scriptedSession, N: 1 + r.Uint64N(n+1)}
			switch k := r.IntN(10); {
			case k < 5:
				n++
				ops[i] = ask(fmt.Sprint("agent ", r.IntN(6)), time.Duration(r.IntN(3))*time.Second, time.Second)
				ops[i].ID, ops[i].Class = store.ID{Session: scriptedSession, N: n}, uint8(r.IntN(3))
			case k < 6:
				ops[i] = store.Op{Kind: store.OpPoll, ID: id, Agent: strings.Repeat("x", r.IntN(100<<10))} // what fills journals
			case k < 7:
				ops[i] = store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.Verdict(r.IntN(3)), RetryAfter: 50 * time.Millisecond, Cause: "script"}
			case k < 8:
				ops[i] = store.Op{Kind: store.OpHeartbeat, Agent: fmt.Sprint("agent ", r.IntN(6)), TTL: time.Minute}
			default:
				ops[i] = store.Op{Kind: store.OpClose, ID: id}
			}
		}
		all = append(all, scriptStep{at, ops})
	}
	return all
}

// stepper is the task of a process that carries out a script.
type stepper struct {
	Dir, Acks   string
	Seed        uint64
	Steps, From int
	Point       string // at which it ends
	Nth         int    // time
}

var _ = role("stepper", func(k stepper) {
	acks, err := os.OpenFile(k.Acks, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		giveUp("%v", err)
	}
	clock := &stillClock{}
	steps := script(k.Seed, k.Steps)
	clock.at.Store(int64(steps[max(k.From-1, 0)].at))
	s, err := filestore.Open(k.Dir, filestore.WithClock(clock), filestore.WithFault(func(where string) {
		if where == k.Point {
			if k.Nth--; k.Nth == 0 {
				killSelf()
				select {}
			}
		}
	}))
	if err != nil {
		giveUp("open: %v", err)
	}
	p, err := s.Pool(context.Background(), scriptSpec())
	if err != nil {
		giveUp("pool: %v", err)
	}
	for i := k.From; i < len(steps); i++ {
		clock.at.Store(int64(steps[i].at))
		if err := p.Apply(context.Background(), steps[i].ops); err != nil {
			giveUp("step %d: %v", i, err)
		}
		if _, err := acks.Write([]byte{'.'}); err != nil {
			giveUp("%v", err)
		}
		if i%2 == 0 && slices.Contains(compacting, k.Point) {
			if err := s.Compact("pool"); err != nil {
				giveUp("compact after step %d: %v", i, err)
			}
		}
	}
	os.Exit(0) // without closing: what waits goes on waiting
})

// model returns what the state must be before the first step, and after each.
func model(t *testing.T, steps []scriptStep) (fresh store.Snapshot, after []store.Snapshot) {
	t.Helper()
	clock := &stillClock{}
	clock.at.Store(int64(steps[0].at))
	m := memstore.New(memstore.WithClock(clock))
	defer m.Close()
	p, err := m.Pool(context.Background(), scriptSpec())
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err = p.Snapshot(context.Background()); err != nil {
		t.Fatal(err)
	}
	snaps := make([]store.Snapshot, len(steps))
	for i, step := range steps {
		clock.at.Store(int64(step.at))
		if err := p.Apply(context.Background(), step.ops); err != nil {
			t.Fatal(err)
		}
		if snaps[i], err = p.Snapshot(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	return fresh, snaps
}

// scene is a script that crashes again and again.
type scene struct {
	*testing.T
	task  stepper
	steps []scriptStep
	fresh store.Snapshot
	want  []store.Snapshot // after each step
	hit   map[string]int   // how often a process ended at a point
	mends int              // how often a step was found half done
}

func newScene(t *testing.T, seed uint64, steps int) *scene {
	s := &scene{T: t, steps: script(seed, steps), hit: map[string]int{}}
	s.fresh, s.want = model(t, s.steps)
	s.task = stepper{Dir: t.TempDir(), Acks: filepath.Join(t.TempDir(), "acks"), Seed: seed, Steps: steps}
	pool := filepath.Join(s.task.Dir, "pools", "pool")
	if err := os.MkdirAll(pool, 0o700); err != nil {
		t.Fatal(err)
	}
	// Those who wait live as long as somebody has their bell.
	bell := filepath.Join(pool, fmt.Sprintf("bell-%012x", scripted))
	holdBell(t, bell)
	return s
}

// play has a process go on with the script until it reaches a point for the nth time. It
// reports whether it came so far.
func (s *scene) play(point string, nth int) bool {
	s.Helper()
	s.task.Point, s.task.Nth = point, nth
	c := start(s, "stepper", s.task)
	state := c.wait()
	if !state.Success() && !killed(state) {
		s.Fatalf("from step %d on: %v\n%s", s.task.From, state, c.errs)
	}
	if killed(state) {
		s.hit[point]++
	}
	return killed(state)
}

// look finds out how far the script has come.
func (s *scene) look(point string) {
	s.Helper()
	acked := s.acked()
	before := s.fresh
	if acked > 0 {
		before = s.want[acked-1]
	}
	clock := &stillClock{}
	next := min(acked, len(s.steps)-1)
	clock.at.Store(int64(s.steps[next].at))
	mends := 0
	f, err := filestore.Open(s.task.Dir, filestore.WithClock(clock), filestore.WithFault(func(where string) {
		if where == "repairing" {
			mends++
		}
	}))
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	p, err := f.Pool(context.Background(), scriptSpec())
	if err != nil {
		s.Fatalf("killed at %q after %d steps: %v", point, acked, err)
	}
	s.mends += min(mends, 1)
	got, err := p.Snapshot(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	same(s, f)
	switch {
	case reflect.DeepEqual(got, s.want[next]):
		s.task.From = next + 1
		s.ack(next + 1 - acked)
	case reflect.DeepEqual(got, before):
		s.task.From = acked
	default:
		s.Fatalf("killed at %q after %d steps, the state is\n%+v\nwant it as before the next step\n%+v\nor after\n%+v",
			point, acked, got, before, s.want[next])
	}
}

// acked returns how many steps are known to be made: by the process that made them, or by this one.
func (s *scene) acked() int {
	s.Helper()
	acks, err := os.ReadFile(s.task.Acks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return len(acks)
}

// ack notes that a step was made whose process could not.
func (s *scene) ack(n int) {
	f, err := os.OpenFile(s.task.Acks, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Repeat(".", max(n, 0))); err != nil {
		s.Fatal(err)
	}
}

// fataler is a test of either kind.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// same checks that the records are what the journal makes of them.
func same(t fataler, f *filestore.Store) {
	t.Helper()
	was, _, err := f.Values("pool", -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Restore("pool"); err != nil {
		t.Fatal(err)
	}
	is, _, err := f.Values("pool", -1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			_, where, _ := f.Values("pool", i)
			t.Fatalf("%s was %d, made anew from the journal it is %d", where, was[i], is[i])
		}
	}
	if len(was) != len(is) {
		t.Fatalf("%d values, made anew from the journal there are %d", len(was), len(is))
	}
}

// points are all places at which the code lets itself be cut off.
func points(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\.fault\("(\w+)"\)`).FindAllSubmatch(text, -1) {
			found[string(m[1])] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// mending are the points in the course of undoing what was cut off.
var mending = []string{"repairing", "replaying", "repaired"}

// turning are those in the course of beginning a new journal.
var turning = []string{"full", "copied", "turned"}

// compacting are those in the course of writing the records anew.
var compacting = []string{"sweeping", "gathered", "saved", "switched", "shortened"}

// cut has one process after the other cut off at a point, until the script is done.
func (s *scene) cut(point func() string, rng *rand.Rand) {
	s.Helper()
	for s.task.From < len(s.steps) {
		at := point()
		switch {
		case slices.Contains(turning, at):
			if s.play(at, 1) {
				s.look(at)
				s.play("counted", 1+rng.IntN(3)) // the next one gets past it
			}
		case !slices.Contains(mending, at):
			s.play(at, 1+rng.IntN(3))
		case s.play("done", 1+rng.IntN(3)):
			s.task.From = s.acked()     // the step that was cut off does not count
			for range 1 + rng.IntN(2) { // the next one is cut off while it mends that
				if !s.play(at, 1) {
					break // there was nothing to do again
				}
			}
		}
		s.look(at)
	}
}

func TestNothingIsLostOrDoneTwiceWhereverAProcessIsCutOff(t *testing.T) {
	t.Parallel()
	all := points(t)
	for _, point := range slices.Concat(mending, turning, compacting, []string{"written", "begun", "done", "counted"}) {
		if !slices.Contains(all, point) {
			t.Errorf("there is no point %q", point)
		}
	}
	for _, point := range all {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			steps := 30
			if slices.Contains(turning, point) {
				steps = 300
			}
			hit := 0
			for seed := range uint64(scaled(t, 1)) {
				s := newScene(t, seed, steps)
				s.cut(func() string { return point }, rand.New(rand.NewPCG(seed, uint64(len(point)))))
				hit += s.hit[point]
				t.Logf("%d steps, cut off: %v, found half done: %d times", steps, s.hit, s.mends)
			}
			if hit == 0 {
				t.Errorf("no process was ever cut off there")
			}
		})
	}
	t.Run("anywhere", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(scaled(t, 1)) {
			rng := rand.New(rand.NewPCG(seed, 3))
			s := newScene(t, seed+1000, 80)
			s.cut(func() string { return all[rng.IntN(len(all))] }, rng)
			t.Logf("%d steps, cut off: %v, found half done: %d times", len(s.steps), s.hit, s.mends)
		}
	})
}
