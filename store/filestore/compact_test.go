//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/storetest"
)

// diskUse is how much all files of a store take.
func diskUse(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// crowdSpec has a daily limit for all and a window for each model and each agent.
func crowdSpec() store.Spec {
	s := specOf(
		store.Limit{Kind: store.Fixed, Size: 1_000_000, Window: 24 * time.Hour},
		store.Limit{Kind: store.Rolling, Size: 1000, Window: time.Minute, Per: store.PerModel},
		store.Limit{Kind: store.Bucket, Size: 1000, Burst: 1000, Window: time.Minute, Per: store.PerAgent, Guard: store.GuardOff},
	)
	s.MaxMeters = 30_000
	return s
}

// nameMany sends one request for each of so many names.
func nameMany(t *testing.T, p store.Pool, names int) {
	t.Helper()
	const batch = 500
	for from := 0; from < names; from += batch {
		ops := make([]store.Op, batch)
		for i := range ops {
			ops[i] = ask(fmt.Sprint("agent ", from+i), 0, time.Minute)
			ops[i].Model = fmt.Sprint("model ", from+i)
		}
		if err := p.Apply(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
		for i := range ops {
			ops[i] = store.Op{Kind: store.OpClose, ID: ops[i].Result.ID, Spent: true}
		}
		if err := p.Apply(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
	}
}

// timeless is a clock without timers. Which of the processes sets one, and when, is for the system to decide: pools that are compared
// would be served at different moments.
type timeless struct{ clock }

func (timeless) AfterFunc(time.Duration, func()) filestore.Timer { return noTimer{} }

// Whatever is done to a pool, its decisions do not depend on whether it was compacted in between, also for processes
// that have it open.
func TestACompactedPoolDecidesTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		draw := traits{rt}
		c := timeless{clock{storetest.NewClock(storetest.Start)}}
		spec := draw.spec()
		var stores [4]*filestore.Store // the first two share a directory, and the others, their twins
		var pools [4]store.Pool
		dir := ""
		for i := range stores {
			var err error
			if i%2 == 0 {
				if dir, err = os.MkdirTemp(t.TempDir(), ""); err != nil {
					rt.Fatal(err)
				}
				defer os.RemoveAll(dir)
			}
			if stores[i], err = filestore.Open(dir, filestore.WithClock(c)); err != nil {
				rt.Fatal(err)
			}
			defer stores[i].Close()
			if pools[i], err = stores[i].Pool(context.Background(), spec); err != nil {
				return // limits that make no sense
			}
			pools[i].Watch(func([]store.ID) {})
		}
		// Both pools are served at the same moments: here.
		advance := func(d time.Duration) {
			c.Advance(d)
			for _, p := range []store.Pool{pools[0], pools[2]} {
				if err := p.Apply(context.Background(), []store.Op{{Kind: store.OpPoll, ID: store.ID{N: 1 << 40}}}); err != nil {
					rt.Fatal(err)
				}
			}
		}
		var tickets [2][]([2]uint64) // of each member, and its twin
		for range draw.number("steps", 1, 50) {
			switch draw.number("step", 0, 9) {
			case 0, 1:
				if err := stores[draw.number("who", 0, 1)].Compact("pool"); err != nil {
					rt.Fatal(err)
				}
			case 2, 3:
				advance(time.Duration(draw.number("time", 0, 1_500_000)) * time.Microsecond)
			case 4:
				advance(time.Duration(draw.number("minutes", 0, 90)) * time.Minute)
			default:
				k := draw.number("member", 0, 1)
				ops := make([]store.Op, draw.number("ops", 0, 4))
				twins := make([]store.Op, len(ops))
				for i := range ops {
					ops[i] = draw.op(len(spec.Limits), uint64(len(tickets[k])), 0)
					ops[i].Agent += fmt.Sprint(draw.number("number", 0, 20))
					twins[i] = ops[i]
					if n := int(ops[i].ID.N); n > 0 && n <= len(tickets[k]) {
						ops[i].ID.N, twins[i].ID.N = tickets[k][n-1][0], tickets[k][n-1][1]
					} else if n > 0 && ops[i].Kind == store.OpObserve {
						ops[i].ID.N, twins[i].ID.N = 0, 0 // a number of its own would be the highest, and later tickets get higher ones
					} else if n > 0 {
						ops[i].ID.N, twins[i].ID.N = 1<<40, 1<<40 // of none
					}
				}
				if err := errors.Join(pools[k].Apply(context.Background(), ops), pools[k+2].Apply(context.Background(), twins)); err != nil {
					rt.Fatal(err)
				}
				for i := range ops {
					got, want := ops[i].Result, twins[i].Result
					if ops[i].Kind == store.OpAcquire {
						tickets[k] = append(tickets[k], [2]uint64{got.ID.N, want.ID.N})
					}
					got.ID, want.ID = store.ID{}, store.ID{} // numbers go on where those that are forgotten were
					if got != want {
						rt.Fatalf("op %d: %+v, and without compaction %+v", i, got, want)
					}
				}
			}
		}
		if got, want := outline(rt, pools[1]), outline(rt, pools[3]); !reflect.DeepEqual(got, want) {
			rt.Fatalf("%+v\nwithout compaction\n%+v", got, want)
		}
	})
}

// outline is a snapshot without what differs between equal pools: numbers of tickets, and who of those that
// are silent was forgotten by now.
func outline(t *rapid.T, p store.Pool) store.Snapshot {
	s, err := p.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.Callers, s.Agents, s.Members = nil, nil, nil
	for i := range s.Queue {
		s.Queue[i].ID = store.ID{}
	}
	return s
}
