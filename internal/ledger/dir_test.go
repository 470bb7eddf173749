package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

const file = "budgets.jsonl"

func read(t *testing.T, dir string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, dir string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Wherever a write was cut off, earlier writes count, and the books stay usable.
func TestCutOffAnywhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	day := pot("day", 1000, ledger.Day, noon)
	l := ledger.NewDir(dir, false)
	r := take(t, l, order(noon, 100, ledger.Account{Pot: day})).Receipt
	settle(t, l, r, 30, noon)
	before := int64(len(read(t, dir)))
	take(t, l, order(noon, 50, ledger.Account{Pot: day}))
	whole := read(t, dir)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := before; cut <= int64(len(whole)); cut++ {
		write(t, dir, whole[:cut])
		l := ledger.NewDir(dir, false)
		want := int64(30)
		if cut == int64(len(whole)) {
			want = 80
		}
		wantUsed(t, l, day, "", want)
		take(t, l, order(noon, 7, ledger.Account{Pot: day}))
		wantUsed(t, l, day, "", want+7)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if text := read(t, dir); bytes.Count(text, []byte("\n")) != bytes.Count(text, []byte("}\n")) {
			t.Fatalf("cut at %d: a line is torn:\n%s", cut, text)
		}
	}
}

// The file does not grow with spending, and processes that follow it continue after a rewrite.
func TestWrittenAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	day, total := each("day", 1<<40, ledger.Day, noon), pot("total", 1<<40, ledger.Total, noon)
	writer, reader := closing(t, ledger.NewDir(dir, false)), closing(t, ledger.NewDir(dir, true))
	open := take(t, writer, order(noon, 5, ledger.Account{Pot: total})).Receipt
	sum, most := int64(5), 0
	for range 6000 {
		r := take(t, writer, order(noon, 10, ledger.Account{Pot: day, Who: "ana"}, ledger.Account{Pot: total})).Receipt
		settle(t, writer, r, 9, noon)
		sum += 9
	}
	if most = len(read(t, dir)); most > 2<<20 {
		t.Errorf("the file has %d bytes", most)
	}
	wantUsed(t, reader, total, "", sum)
	settle(t, reader, open, 6, noon) // a reservation outlives it
	wantUsed(t, writer, total, "", sum+1)
	wantUsed(t, writer, day, "ana", sum-5)
	if left, err := filepath.Glob(filepath.Join(dir, "*.new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if tag, err := filepath.Glob(filepath.Join(dir, "CACHEDIR.TAG")); err != nil || len(tag) > 0 {
		t.Error("the directory is marked as a cache")
	}
}

func TestWhatIsNotOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	day := pot("day", 1000, ledger.Day, noon)
	later := `{"sluice":"budgets","version":2}` + "\n"
	write(t, dir, []byte(later))
	l := closing(t, ledger.NewDir(dir, false))
	if _, err := l.Take(context.Background(), order(noon, 1, ledger.Account{Pot: day})); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the books of a later version: %v", err)
	}
	if got := string(read(t, dir)); got != later {
		t.Errorf("they were changed: %q", got)
	}
	// A line that makes no sense is not counted, and the others are.
	write(t, dir, []byte(`{"sluice":"budgets","version":1}`+"\n"+`{"op":"have","micros":40,"from":[["day","","2026-03-04"]]}`+"\n"+"garbage\n\n"+`{"op":"new"}`+"\n"))
	wantUsed(t, l, day, "", 40)
}

// A read-only ledger creates nothing.
func TestLooking(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "budgets")
	l := closing(t, ledger.NewDir(dir, true))
	day := pot("day", 1000, ledger.Day, noon)
	wantUsed(t, l, day, "", 0)
	settle(t, l, "0123", 5, noon)
	if _, err := l.Take(context.Background(), order(noon, 1, ledger.Account{Pot: day})); err == nil {
		t.Error("something was taken")
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
}

// The store decides where budgets are kept, whatever its URL.
func TestBeside(t *testing.T) {
	t.Parallel()
	mem := memstore.New()
	if a, b := ledger.Beside(mem, false), ledger.Beside(mem, false); a == nil || a != b {
		t.Errorf("a store in memory has %v and %v", a, b)
	}
	dir := t.TempDir()
	files, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = files.Close() }()
	books := closing(t, ledger.Beside(files, false))
	order := ledger.Order{Lines: []ledger.Account{{Pot: ledger.Pot{Budget: "b", Size: 10}}}, Amount: 1, Now: storetest.Start.Std(), TTL: time.Minute}
	if _, err := books.Take(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	if text := read(t, filepath.Join(dir, "budgets")); len(text) == 0 {
		t.Error("nothing is beside the pools")
	}
	if l := ledger.Beside(struct{ store.Store }{mem}, false); l != nil {
		t.Errorf("a store that says nothing has %v", l)
	}
}

// Nothing in a store lasts longer than its longest window. A total does, as long as it is used now and then.
func TestTotalOutlastsAStoresWindows(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(storetest.Start)
	st := memstore.New(memstore.WithClock(clock))
	l := closing(t, ledger.NewInStore(st, false, nil))
	now := func() time.Time { return clock.Now().Std() }
	total := each("total", 1000, ledger.Total, now())
	for n := int64(1); n <= 9; n++ {
		for _, who := range []string{"ana", "bo"} {
			r := take(t, l, order(now(), 100, ledger.Account{Pot: total, Who: who})).Receipt
			settle(t, l, r, 110, now())
			wantUsed(t, l, total, who, 110*n)
		}
		clock.Advance(150 * 24 * time.Hour)
	}
	if got := take(t, l, order(now(), 100, ledger.Account{Pot: total, Who: "ana"})); got.Full != 0 {
		t.Errorf("after years it was forgotten: %+v", got)
	}
}

// Names come from outside, so the number of accounts is bounded.
func TestNamesThatAreTooLong(t *testing.T) {
	t.Parallel()
	kinds(t, func(t *testing.T, b books, now time.Time) {
		p := each("day", 1000, ledger.Day, now)
		take(t, b, order(now, 10, ledger.Account{Pot: p, Who: strings.Repeat("x", 300)}))
		wantUsed(t, b, p, "(others)", 10)
		if _, err := b.Take(context.Background(), order(now, 0, ledger.Account{Pot: p})); err == nil {
			t.Error("nothing was taken, and it was granted")
		}
	})
}
