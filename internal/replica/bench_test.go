package replica_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/storetest"
)

// fleet is processes that make whole tickets of the usual kind: an acquire, its answer, and a close with the amounts used,
// each in an entry of its own.
type fleet struct {
	tb      testing.TB
	own     *replica.Replica // of the writers
	writers []*replica.Writer
	ids     []uint64
	stamp   store.Time
	offset  int64
	ticket  int
	entries []sharedlog.Entry
	ops     [1]store.Op
	amounts [3]store.Amount
	request [1]replica.Request
}

const agentsEach = 40

func usualSpec() store.Spec {
	return store.Spec{
		Name: "anthropic", Member: "worker-17", MaxWaiting: 1000,
		Limits: []store.Limit{
			{Name: "requests", Kind: store.Bucket, Unit: "requests", Size: 4_000_000, Burst: 4_000_000, Window: time.Minute, Per: store.PerModel},
			{Name: "input", Kind: store.Bucket, Unit: "input_tokens", Size: 1 << 38, Burst: 1 << 38, Window: time.Minute, Per: store.PerModel, Estimated: true},
			{Name: "output", Kind: store.Bucket, Unit: "output_tokens", Size: 1 << 38, Burst: 1 << 38, Window: time.Minute, Per: store.PerModel, Late: true},
		},
		Classes:  []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
}

func newFleet(tb testing.TB, processes int) *fleet {
	f := &fleet{tb: tb, own: replica.New(), stamp: storetest.Start}
	spec := usualSpec()
	for n := range uint64(processes) {
		id := replica.ProcessID((n + 1) << 50)
		f.ids = append(f.ids, id)
		f.writers = append(f.writers, replica.NewWriter(replica.Identity{Process: id, Machine: n + 1}))
		f.append(int(n), replica.Request{Kind: replica.Open, Session: replica.SessionOf(id, 1), Spec: &spec})
	}
	return f
}

// append appends an entry of a process, half a millisecond after the one before, and returns its operation.
func (f *fleet) append(process int, q replica.Request) store.Op {
	f.stamp += 500
	f.request[0] = q
	body, err := f.writers[process].Append(nil, f.own, f.stamp.Sub(storetest.Start), f.request[:])
	if err != nil {
		f.tb.Fatal(err)
	}
	f.offset += sharedlog.FrameSize(len(body))
	e := sharedlog.Entry{Body: body, Stamp: f.stamp, At: sharedlog.Position{Offset: f.offset}}
	f.entries = append(f.entries, e)
	did := f.own.Apply(e)
	if did.Err != nil {
		f.tb.Fatal(did.Err)
	}
	if len(did.Ops) == 0 {
		return store.Op{}
	}
	return did.Ops[0]
}

func (f *fleet) operate(process int, op store.Op) store.Op {
	f.ops[0] = op
	done := f.append(process, replica.Request{Session: replica.SessionOf(f.ids[process], 1), Ops: f.ops[:]})
	if done.Result.State != store.Granted && done.Result.State != store.Ended {
		f.tb.Fatalf("%+v", done.Result)
	}
	return done
}

func (f *fleet) use(input, output int64) []store.Amount {
	f.amounts = [3]store.Amount{{Unit: "requests", N: 1}, {Unit: "input_tokens", N: input}, {Unit: "output_tokens", N: output}}
	return f.amounts[:]
}

// tickets makes n whole tickets.
func (f *fleet) tickets(n int) {
	for range n {
		f.ticket++
		k := f.ticket
		process := k % len(f.writers)
		agent := k / len(f.writers) % agentsEach
		got := f.operate(process, store.Op{
			Kind: store.OpAcquire, Agent: fmt.Sprint("crew/agent-", process, "-", agent), User: "ada", Model: "claude-sonnet-4-5", Key: "key-3f9a",
			Class: 1, Wait: 30 * time.Second, Alive: 10 * time.Second, TTL: 10 * time.Minute, Tie: store.TieBeat,
			Amounts: f.use(int64(200+k%9000), 1024),
		})
		id := store.ID{Session: got.Result.ID.Session, N: got.Result.ID.N}
		answer := store.Op{Kind: store.OpAnswer, ID: id, Model: "claude-sonnet-4-5", Verdict: store.VerdictOK}
		if k%40 == 0 { // headers are read at most every 20 ms
			answer.Observed = []store.Observed{
				{Limit: "requests", Size: 4_000_000, Remaining: 4_000_000, ResetIn: time.Second},
				{Limit: "input", Size: 1 << 38, Remaining: 1 << 38, ResetIn: time.Second},
			}
		}
		f.operate(process, answer)
		f.operate(process, store.Op{Kind: store.OpClose, ID: id, Amounts: f.use(int64(200+k%9000), int64(k%3000))})
	}
}

// A whole ticket takes at most 80 bytes of the log, frames included.
func TestATicketIsSmall(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 10)
	f.tickets(2000)
	before := f.offset
	const n = 5000
	f.tickets(n)
	per := float64(f.offset-before) / n
	t.Logf("%.1f bytes per ticket", per)
	if per > 80 {
		t.Errorf("%.1f bytes per ticket, at most 80", per)
	}
}

// What applying the entries of others costs.
func BenchmarkForeign(b *testing.B) {
	for _, processes := range []int{1, 10, 200} {
		b.Run(fmt.Sprint(processes, "processes"), func(b *testing.B) {
			f := newFleet(b, processes)
			f.tickets(2000)
			snapshot := f.own.AppendSnapshot(nil)
			f.entries = f.entries[:0]
			f.tickets(20_000)
			b.ReportAllocs()
			b.ResetTimer()
			var r *replica.Replica
			for i := range b.N {
				k := i % len(f.entries)
				if k == 0 {
					b.StopTimer()
					var err error
					if r, err = replica.Restore(snapshot); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				if did := r.Apply(f.entries[k]); did.Err != nil {
					b.Fatal(did.Err)
				}
			}
			b.ReportMetric(3*float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/ticket")
		})
	}
}

// What a whole ticket costs the process that makes it: three entries, written and applied.
func BenchmarkOwnTicket(b *testing.B) {
	f := newFleet(b, 10)
	f.tickets(2000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		f.tickets(1)
		f.entries = f.entries[:0]
	}
}
