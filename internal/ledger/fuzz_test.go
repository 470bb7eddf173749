package ledger

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// FuzzJournal reads arbitrary budget files. Either there is an error that names the directory and leaves the file
// unchanged, or a later take is counted once, also after a rewrite of the file.
func FuzzJournal(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, journal)
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	day := Pot{Budget: "day", Size: MaxMicros, Period: Day.At(now)}
	lines := `{"op":"take","id":"a","micros":5,"from":[["day","","2026-03-04"]],"until":1772625600}` + "\n" + `{"op":"settle","id":"a","micros":3}` + "\n"
	f.Add([]byte(headline + lines))
	f.Add([]byte(headline + lines + `{"op":"have","micros":9223372036854775807,"from":[["day","","2026-03-04"]]}` + "\n"))
	f.Add([]byte(headline + lines + `{"op":"take","id":"b","micros":-9223372036854775808,"from":[["day","","2026-03-04"]]}` + "\n" + lines))
	f.Add([]byte(headline + lines[:40]))
	f.Add([]byte(headline[:9]))
	f.Add([]byte(`{"sluice":"budgets","version":2}` + "\n"))
	f.Add([]byte("somebody else's file"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		l := NewDir(dir, false)
		defer l.Close()
		before, err := l.Read(t.Context(), []Pot{day})
		if err != nil {
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), dir) {
				t.Errorf("the error is %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
				t.Errorf("a file that cannot be read was changed to %q, %v", now, err)
			}
			return
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(is, []byte(headline)) || !bytes.HasPrefix(text, is) && !strings.HasPrefix(headline, string(text)) {
			t.Errorf("%q became %q, %v", text, is, err)
		}
		for _, b := range before {
			if b.Used < 0 || b.Used > mostSpent {
				t.Fatalf("%d is spent", b.Used)
			}
		}
		taken, err := l.Take(t.Context(), Order{Amount: 7, Lines: []Account{{Pot: day, Force: true}}, Now: now, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		was, is := spent(before), l.spent(t, day)
		if want := min(was+7, mostSpent); is != want {
			t.Fatalf("%d of %d is spent after 7 more", is, was)
		}
		book := newBook()
		for _, e := range l.book.entries() {
			book.apply(&e)
		}
		if !reflect.DeepEqual(book.purses, l.book.purses) {
			t.Errorf("written anew: %v, was %v", book.purses, l.book.purses)
		}
		if err := l.Cancel(t.Context(), taken.Receipt, now); err != nil {
			t.Fatal(err)
		}
		other := NewDir(dir, false)
		defer other.Close()
		if again := other.spent(t, day); again != l.spent(t, day) {
			t.Errorf("another process reads %d, this one %d", again, l.spent(t, day))
		}
	})
}

func spent(list []Balance) (sum int64) {
	for _, b := range list {
		if b.Who == "" {
			sum = b.Used
		}
	}
	return sum
}

func (d *Dir) spent(t *testing.T, p Pot) int64 {
	t.Helper()
	list, err := d.Read(t.Context(), []Pot{p})
	if err != nil {
		t.Fatal(err)
	}
	return spent(list)
}

// Impossible amounts overflowed, and a spent budget looked unspent.
func TestSumsDoNotRunOver(t *testing.T) {
	t.Parallel()
	a := accountJSON{"day", "", "2026-03-04"}
	b := newBook()
	for _, e := range []entry{
		{Op: "take", ID: "a", USD: MaxMicros, From: []accountJSON{a}},
		{Op: "take", ID: "b", USD: 1<<63 - 1, From: []accountJSON{a}},
		{Op: "settle", ID: "a", USD: -1 << 63},
		{Op: "have", USD: -5, From: []accountJSON{a}},
		{Op: "have", USD: 5, From: []accountJSON{a}},
	} {
		b.apply(&e)
	}
	if used := b.purses[account{a[0], a[1], a[2]}].used; used != MaxMicros {
		t.Errorf("%d is spent, want %d", used, int64(MaxMicros))
	}
}

// A file of one incomplete line was taken for one whose writer was killed, and was emptied.
func TestSomebodyElsesFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	for text, stays := range map[string]bool{"notes on the budget": true, `{"sluice":"budgets","version":12}`: true, headline[:12]: false, "": false} {
		dir := t.TempDir()
		path := filepath.Join(dir, journal)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := NewDir(dir, false)
		_, err := l.Read(t.Context(), nil)
		_ = l.Close()
		is, readErr := os.ReadFile(path)
		if readErr != nil || stays != (string(is) == text) || stays != errors.Is(err, errForeign) {
			t.Errorf("%q became %q: %v, %v", text, is, err, readErr)
		}
	}
}
