package eventlog

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

func put(tb testing.TB, dir string, i int, text string) {
	tb.Helper()
	if err := os.WriteFile(fileName(dir, i), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func TestNothingToRead(t *testing.T) {
	for _, dir := range []string{"", t.TempDir(), t.TempDir() + "/none"} {
		if got, garbage := all(t, dir); len(got) != 0 || garbage != 0 {
			t.Errorf("%q: got %v and %d", dir, got, garbage)
		}
	}
}

func TestReadTakesWhatItFinds(t *testing.T) {
	one, two := string(line(send("a", 0))), string(line(send("a", 1)))
	for name, c := range map[string]struct {
		text            string
		events, garbage int
	}{
		"lines":                {one + two, 2, 0},
		"no end yet":           {one + strings.TrimSuffix(two, "\n"), 2, 0},
		"torn at the end":      {one + two[:40], 1, 0},
		"torn in the middle":   {one[:40] + two, 1, 1},
		"torn and ended":       {one[:40] + "\n" + two, 1, 1},
		"empty lines":          {"\n\n" + one + "\r\n", 1, 0},
		"text":                 {"hello\n" + one + "{}\n[1]\nnull\n" + `{"time":"2026-03-04T12:00:00Z"}` + "\n", 1, 5},
		"fields of the future": {`{"time":"2026-03-04T12:00:00Z","event":"new","color":"blue"}` + "\n", 1, 0},
		"a wrong type":         {`{"time":"2026-03-04T12:00:00Z","event":7}` + "\n", 0, 1},
		"a very long line":     {strings.Repeat("x", 3*MaxLine) + "\n" + one, 1, 1},
		"zeros":                {string(make([]byte, 100)) + one, 1, 1},
	} {
		dir := t.TempDir()
		put(t, dir, 0, c.text)
		if got, garbage := all(t, dir); len(got) != c.events || garbage != c.garbage {
			t.Errorf("%s: %d events and %d lines of garbage, want %d and %d", name, len(got), garbage, c.events, c.garbage)
		}
	}
}

func TestReadSinceAndUntil(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 { // the oldest file has the oldest events
		put(t, dir, 2-i, string(line(send("a", 2*i)))+string(line(send("a", 2*i+1))))
	}
	var got []string
	read := func(since time.Time, most int) string {
		got = nil
		if _, err := Read(dir, since, func(e inspect.Event) bool {
			got = append(got, strings.TrimPrefix(e.Ticket, "api.1-"))
			return len(got) < most
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(got, " ")
	}
	if got := read(time.Time{}, 100); got != "1 2 3 4 5 6" {
		t.Errorf("got %s", got)
	}
	if got := read(start.Add(3*time.Millisecond), 100); got != "4 5 6" {
		t.Errorf("got %s", got)
	}
	if got := read(time.Time{}, 3); got != "1 2 3" {
		t.Errorf("got %s", got)
	}
	old := start.Add(-time.Hour)
	if err := os.Chtimes(fileName(dir, 2), old, old); err != nil {
		t.Fatal(err)
	}
	if got := read(start, 100); got != "3 4 5 6" { // a file that was last written before is not looked at
		t.Errorf("got %s", got)
	}
}

// A file that is rotated away while it is read is read to the end, and nothing is read twice.
func TestReadWhileRotating(t *testing.T) {
	dir := t.TempDir()
	f := newFiles(dir)
	f.max = 2000
	n := 0
	for ; n < 30; n++ {
		if err := f.append(line(send("a", n))); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := all(t, dir)
	var got []inspect.Event
	if _, err := Read(dir, time.Time{}, func(e inspect.Event) bool {
		got = append(got, e)
		for range 10 {
			n++
			if err := f.append(line(send("b", n))); err != nil {
				t.Fatal(err)
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	f.close()
	if fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("got %d events, want those %d that were there", len(got), len(before))
	}
}

func FuzzReadLines(f *testing.F) {
	one := line(send("a", 0))
	f.Add(one)
	f.Add(append(one[:30:30], one...))
	f.Add(bytes.Repeat([]byte("x"), 2*MaxLine))
	f.Add([]byte("{\"time\":\"\n{}\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		events := 0
		garbage, err := readLines(bytes.NewReader(text), nil, func(e inspect.Event) bool {
			if e.Kind == "" || e.Time.IsZero() {
				t.Errorf("an event of nothing: %+v", e)
			}
			if again := line(e); again != nil {
				if _, ok := parse(again); !ok {
					t.Errorf("%q cannot be read again", again)
				}
			}
			events++
			return true
		})
		if lines := bytes.Count(text, []byte("\n")) + 1; err != nil || events > lines || garbage > lines {
			t.Errorf("%d events and %d lines of garbage from %d lines, %v", events, garbage, lines, err)
		}
		// Whatever stands before it, a whole line is found.
		found := false
		if _, err := readLines(bytes.NewReader(append(append([]byte{}, text...), line(send("last", 7))...)), nil, func(e inspect.Event) bool {
			found = found || e.Agent == "last"
			return true
		}); err != nil || !found {
			t.Errorf("a line after %q is not found, %v", text, err)
		}
	})
}
