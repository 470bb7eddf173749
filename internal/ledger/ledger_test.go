package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
	_ "github.com/sluicehq/sluice/store/redisstore"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	leaktest.Main(m)
}

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

func pot(name string, size int64, length ledger.Length, now time.Time) ledger.Pot {
	return ledger.Pot{Budget: name, Size: size, Period: length.At(now)}
}

func each(name string, size int64, length ledger.Length, now time.Time) ledger.Pot {
	p := pot(name, size, length, now)
	p.Each = true
	return p
}

func order(now time.Time, amount int64, lines ...ledger.Account) ledger.Order {
	return ledger.Order{Lines: lines, Amount: amount, Now: now, TTL: time.Hour}
}

// books is one ledger and a way to open it again, as another process would.
type books struct {
	ledger.Ledger
	again func() ledger.Ledger
}

// kinds runs a test on every kind of ledger.
func kinds(t *testing.T, test func(t *testing.T, b books, now time.Time)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		m := ledger.NewMemory()
		test(t, books{m, func() ledger.Ledger { return m }}, noon)
	})
	t.Run("dir", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir() + "/budgets"
		open := func() ledger.Ledger { return closing(t, ledger.NewDir(dir, false)) }
		test(t, books{open(), open}, noon)
	})
	inStore := func(t *testing.T, st store.Store, now time.Time) {
		t.Cleanup(func() { _ = st.Close() })
		pots := func(time.Time) []ledger.Pot { return nil }
		open := func() ledger.Ledger { return closing(t, ledger.NewInStore(st, false, pots)) }
		test(t, books{open(), open}, now)
	}
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		inStore(t, memstore.New(), time.Now().UTC())
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s := redisrun.New(t)
		st, err := store.Open(context.Background(), "redis://"+s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		inStore(t, st, time.Now().UTC())
	})
}

func closing(t *testing.T, l ledger.Ledger) ledger.Ledger {
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func take(t *testing.T, l ledger.Ledger, o ledger.Order) ledger.Taken {
	t.Helper()
	taken, err := l.Take(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if (taken.Receipt == "") != (taken.Full >= 0) {
		t.Fatalf("neither granted nor refused: %+v", taken)
	}
	return taken
}

func settle(t *testing.T, l ledger.Ledger, receipt string, actual int64, now time.Time) {
	t.Helper()
	if err := l.Settle(context.Background(), receipt, actual, now); err != nil {
		t.Fatal(err)
	}
}

// used is what was spent of a pot, by whose it is.
func used(t *testing.T, l ledger.Ledger, p ledger.Pot) map[string]int64 {
	t.Helper()
	list, err := l.Read(context.Background(), []ledger.Pot{p})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, b := range list {
		out[b.Who] = b.Used
	}
	return out
}

func wantUsed(t *testing.T, l ledger.Ledger, p ledger.Pot, who string, want int64) {
	t.Helper()
	if got := used(t, l, p)[who]; got != want {
		t.Errorf("%d used of %s by %q, want %d", got, p.Budget, who, want)
	}
}

func TestReserveAndSettle(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		day := pot("day", 1000, ledger.Day, now)
		l := ledger.Account{Pot: day}
		first := take(t, b, order(now, 400, l))
		wantUsed(t, b, day, "", 400)
		second := take(t, b, order(now, 600, l))
		if got := take(t, b, order(now, 1, l)); got.Full != 0 {
			t.Errorf("there is nothing left, and it was let through: %+v", got)
		}
		settle(t, b, first.Receipt, 100, now) // less
		wantUsed(t, b, day, "", 700)
		settle(t, b, second.Receipt, 1500, now) // more than there is
		wantUsed(t, b, day, "", 1600)
		settle(t, b, first.Receipt, 5, now) // it has ended
		settle(t, b, second.Receipt, 5, now)
		wantUsed(t, b, day, "", 1600)
		if got := take(t, b, order(now, 1, l)); got.Full != 0 {
			t.Errorf("let through above the budget: %+v", got)
		}
	})
}

func TestEndsOfReservations(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		day := pot("day", 1000, ledger.Day, now)
		l := ledger.Account{Pot: day}
		for _, c := range []struct {
			name string
			end  func(receipt string) error
			left int64
		}{
			{"cancelled", func(r string) error { return b.Cancel(ctx, r, now) }, 0},
			{"free", func(r string) error { return b.Settle(ctx, r, 0, now) }, 0},
			{"unknown", func(r string) error { return b.Settle(ctx, r, -1, now) }, 70},
			{"nothing heard", func(string) error { return nil }, 70},
		} {
			before := used(t, b, day)[""]
			r := take(t, b, order(now, 70, l)).Receipt
			if err := c.end(r); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if got := used(t, b, day)[""] - before; got != c.left {
				t.Errorf("%s: %d stay, want %d", c.name, got, c.left)
			}
			if err := b.Cancel(ctx, r, now); err != nil {
				t.Errorf("%s: cancelled once more: %v", c.name, err)
			}
		}
	})
}

func TestAllOrNone(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		fleet, user := pot("fleet", 10_000, ledger.Month, now), each("user", 500, ledger.Day, now)
		lines := func(who string) []ledger.Account { return []ledger.Account{{Pot: fleet}, {Pot: user, Who: who}} }
		take(t, b, order(now, 400, lines("ana")...))
		if got := take(t, b, order(now, 200, lines("ana")...)); got.Full != 1 {
			t.Errorf("refused by line %d, want 1", got.Full)
		}
		take(t, b, order(now, 200, lines("bo")...))
		wantUsed(t, b, fleet, "", 600)
		wantUsed(t, b, user, "ana", 400)
		wantUsed(t, b, user, "bo", 200)
	})
}

func TestForced(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		alert := each("alert", 100, ledger.Total, now)
		l := ledger.Account{Pot: alert, Who: "ana", Force: true}
		if got := take(t, b, order(now, 100, l)); len(got.Over) != 0 {
			t.Errorf("over at its size: %+v", got)
		}
		if got := take(t, b, order(now, 500, l)); len(got.Over) != 1 {
			t.Errorf("not over: %+v", got)
		}
		wantUsed(t, b, alert, "ana", 600)
		for i := range 3 {
			first, err := b.Tell(ctx, l, now)
			if err != nil || first != (i == 0) {
				t.Errorf("told %d: %v, %v", i, first, err)
			}
		}
		other := l
		other.Who = "bo"
		if first, err := b.again().Tell(ctx, other, now); err != nil || !first {
			t.Errorf("another one's account: %v, %v", first, err)
		}
	})
}

// Reopened books contain what was spent.
func TestReopened(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		total := each("total", 1000, ledger.Total, now)
		l := ledger.Account{Pot: total, Who: "ana"}
		r := take(t, b, order(now, 600, l)).Receipt
		next := b.again()
		if got := take(t, next, order(now, 500, l)); got.Full != 0 {
			t.Errorf("the budget was forgotten: %+v", got)
		}
		settle(t, b, r, 650, now)
		wantUsed(t, next, total, "ana", 650)
	})
}

// A day starts again at midnight, a month on its first day, a total never. Earlier orders are settled in their own
// period.
func TestPeriodsTurn(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		for _, c := range []struct {
			length ledger.Length
			anew   bool
		}{{ledger.Day, true}, {ledger.Month, true}, {ledger.Total, false}} {
			name := fmt.Sprint("budget", c.length)
			old := pot(name, 1000, c.length, now)
			begun, later := old.Period.End.Add(-time.Minute), old.Period.End
			if c.length == ledger.Total {
				begun, later = now, now.Add(time.Minute)
			}
			r := take(t, b, order(begun, 900, ledger.Account{Pot: old})).Receipt
			next := pot(name, 1000, c.length, later)
			if got := take(t, b, order(later, 900, ledger.Account{Pot: next})); (got.Full < 0) != c.anew {
				t.Errorf("%s: %+v in the next period", name, got)
			}
			settle(t, b, r, 950, later)
			want := int64(900)
			if !c.anew {
				want = 950
			}
			wantUsed(t, b, next, "", want)
			if c.anew {
				wantUsed(t, b, old, "", 950)
			}
		}
	})
}

// Nothing settled is lost or counted twice, whatever runs concurrently. A budget is exceeded by at most what was in
// flight.
func TestSumOfSettledIsTheLedger(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		const callers, size = 8, 40_000
		fleet, user := pot("fleet", size, ledger.Day, now), each("user", size, ledger.Month, now)
		var mu sync.Mutex
		spent, most := map[string]int64{}, int64(0)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				l, who := b.again(), fmt.Sprint("u", i%3)
				rnd := rand.New(rand.NewPCG(uint64(i), 7)) //nolint:gosec // repeatable
				for range 40 {
					guess := 1 + rnd.Int64N(400)
					taken, err := l.Take(ctx, order(now, guess, ledger.Account{Pot: fleet}, ledger.Account{Pot: user, Who: who}))
					if err != nil {
						t.Error(err)
						return
					}
					if taken.Full >= 0 {
						continue
					}
					actual := guess
					switch rnd.IntN(4) {
					case 0:
						actual, err = 0, l.Cancel(ctx, taken.Receipt, now)
					case 1:
						err = l.Settle(ctx, taken.Receipt, -1, now)
					default:
						actual = rnd.Int64N(800)
						err = l.Settle(ctx, taken.Receipt, actual, now)
					}
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					spent[who] += actual
					most = max(most, actual-guess)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		sum := int64(0)
		for who, n := range spent {
			sum += n
			wantUsed(t, b, user, who, n)
		}
		wantUsed(t, b, fleet, "", sum)
		if over := sum - size; over > callers*most {
			t.Errorf("%d above the budget, and no more than %d were under way", over, callers*most)
		}
	})
}
