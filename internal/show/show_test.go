package show

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestTextIsHarmless(t *testing.T) {
	t.Parallel()
	utf, ascii := Style{}, Style{ASCII: true}
	for _, c := range []struct {
		style Style
		in    string
		width int
		want  string
	}{
		{utf, "indexer", 10, "indexer"},
		{utf, "indexer", 7, "indexer"},
		{utf, "indexer", 6, "index…"},
		{utf, "indexer", 1, "…"},
		{ascii, "indexer", 6, "inde.."},
		{ascii, "indexer", 1, "."},
		{utf, "a\x1b[31mb\x07\u009bc", 20, "a\ufffd[31mb\ufffd\ufffdc"},
		{ascii, "a\x1b[31mb\u009bé", 20, "a?[31mb??"},
		{utf, "a\nb\tc\rd\u00a0e", 20, "a b c d e"},
		{utf, "a\u202eb\u2066c\u200b", 20, "a\ufffdb\ufffdc\ufffd"},
		{utf, "<b>&[red]", 20, "<b>&[red]"},
		{utf, "世界世界", 8, "世界世界"},
		{utf, "世界世界", 7, "世界世…"},
		{utf, "世界世界", 6, "世界…"},
		{utf, "e\u0301\u0301\u0301\u0301x", 5, "e\u0301\u0301x"},
		{utf, "\u0301\u0301x", 5, "x"},
		{utf, "שלום", 10, "שלום\u200e"},
		{utf, "\xff\xfe", 10, "\ufffd\ufffd"},
		{utf, "", 10, ""},
	} {
		if got := c.style.Text(c.in, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b]0;x\x07\u202e世\u0301", 5, true)
	f.Add(strings.Repeat("\u0301", 10_000), 3, false)
	f.Fuzz(func(t *testing.T, text string, width int, ascii bool) {
		s := Style{ASCII: ascii}
		width = max(width%200, -1)
		got := s.Text(text, width)
		if width > 0 && Width(got) > width {
			t.Fatalf("%q is %d wide, not %d", got, Width(got), width)
		}
		if !utf8.ValidString(got) || len(got) > 3*maxBytes+10 {
			t.Fatalf("%q", got)
		}
		for _, r := range strings.TrimSuffix(got, "\u200e") {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || ascii && r > unicode.MaxASCII {
				t.Fatalf("%q has %U", got, r)
			}
		}
	})
}

func TestBars(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part        float64
		utf, ascii_ string
	}{
		{0, "░░░░", "----"}, {0.001, "▏░░░", "#---"}, {0.5, "██░░", "##--"}, {0.6, "██▍░", "##--"}, {0.9999, "███▉", "###-"},
		{1, "████", "####"}, {7, "████", "####"}, {-1, "░░░░", "----"}, {math.NaN(), "░░░░", "----"}, {math.Inf(1), "████", "####"},
	} {
		if got := (Style{}).Bar(c.part, 4); got != c.utf {
			t.Errorf("%v: %q, want %q", c.part, got, c.utf)
		}
		if got := (Style{ASCII: true}).Bar(c.part, 4); got != c.ascii_ {
			t.Errorf("%v: %q, want %q", c.part, got, c.ascii_)
		}
	}
	if got := (Style{}).Bar(1, 0); got != "" {
		t.Errorf("%q", got)
	}
	if got := (Style{}).Spark([]float64{9, 0, 1, 4, 8, math.NaN(), math.Inf(1)}, 8); got != " █▁▁▄█▁█" {
		t.Errorf("%q", got)
	}
	if got := (Style{ASCII: true}).Spark([]float64{9, 0, 1, 4, 8}, 4); got != "..=@" {
		t.Errorf("%q", got)
	}
	if got := (Style{}).Spark([]float64{0, 0}, 2); got != "▁▁" {
		t.Errorf("%q", got)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", -5: "-5", 99_999: "99999", 100_000: "100k", 999_499: "999k", 999_500: "1.0M", 12_340_000: "12.3M",
		2_000_000_000: "2.0G", math.MaxInt64: "9.2e+18", math.MinInt64: "-9.2e+18",
	} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0", -1: "0", 0.001: "<0.01", 0.125: "0.12", 3: "3", 3.14: "3.1", 99.96: "100", 1e30: "1.0e+18", math.Inf(1): "0"} {
		if got := Rate(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0%", 0.005: "0.5%", 0.01: "1%", 0.0994: "9.9%", 0.0996: "10%", 0.5: "50%", 28.8: "2880%", 1e300: "1000000%", -3: "0%"} {
		if got := Percent(x); got != want {
			t.Errorf("%v: %s, want %s", x, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", -time.Second: "0s", time.Millisecond: "<10ms", 123 * time.Millisecond: "120ms", 1234 * time.Millisecond: "1.2s", 42 * time.Second: "42s",
		59*time.Second + 700*time.Millisecond: "1m00s", 90 * time.Second: "1m30s", 12*time.Hour + 5*time.Minute: "12h05m", 50 * time.Hour: "2d02h",
	} {
		if got := Span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	now := time.Unix(1000, 0)
	soon, past := now.Add(1100*time.Millisecond), now.Add(-time.Minute)
	if a, b, c := Left(&soon, now), Left(&past, now), Left(nil, now); a != "2s" || b != "now" || c != "" {
		t.Errorf("%q %q %q", a, b, c)
	}
	if a, b := Ago(past, now), Ago(soon, now); a != "1m00s ago" || b != "now" {
		t.Errorf("%q %q", a, b)
	}
}

func TestTables(t *testing.T) {
	t.Parallel()
	table := func() *Table {
		x := &Table{Indent: "  ", Columns: []Column{
			{Head: "name", Least: 5}, {Head: "none"}, {Head: "n", Right: true}, {Head: "extra", Drop: 1}, {Head: "more", Drop: 2},
		}}
		x.Add(Cell{Text: "a-long-name"}, Cell{}, Cell{Text: "1"}, Cell{Text: "x"}, Cell{Text: "yyyy"})
		x.Add(Cell{Text: "b"}, Cell{}, Cell{Text: "1000", Colour: Red}, Cell{}, Cell{})
		return x
	}
	for width, want := range map[int]string{
		0:  "  name            n  extra  more\n  a-long-name     1  x      yyyy\n  b            1000",
		80: "  name            n  extra  more\n  a-long-name     1  x      yyyy\n  b            1000",
		28: "  name        n  extra  more\n  a-long…     1  x      yyyy\n  b        1000",
		20: "  name      n  extra\n  a-lo…     1  x\n  b      1000",
		13: "  name      n\n  a-lo…     1\n  b      1000",
		12: "  name     …\n  a-lo…    …\n  b      10…",
		4:  "  n…\n  a…\n  b…",
	} {
		lines := table().Lines(Style{}, width)
		got := strings.Join(lines, "\n")
		for _, line := range lines {
			if width > 0 && Width(line) > width {
				t.Errorf("%d: %q is %d wide", width, line, Width(line))
			}
		}
		if got != want {
			t.Errorf("%d:\n%s\nwant\n%s", width, got, want)
		}
	}
	if got := table().Lines(Style{Colour: true}, 0)[2]; got != "  b            \x1b[31m1000\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"LANG": "en_US.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.utf8"}, true},
		{map[string]string{"LANG": "C"}, false},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_CTYPE": "C.UTF-8"}, true},
	} {
		if got := UTF8(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
	}
}

func TestWrapAndNames(t *testing.T) {
	t.Parallel()
	if got := strings.Join(Wrap("one two three-and-more four", 9), "|"); got != "one two|three-and-more|four" {
		t.Errorf("%q", got)
	}
	if got := (Style{}).Names([]string{"a", "b\x1b", "c"}, ", ", 2, 10); got != "a, b\ufffd, and 1 more" {
		t.Errorf("%q", got)
	}
	for _, code := range []string{"limit", "order", "paused", "probe", "ramp", "light", "share", "reserve", "pace", "breaker", "capacity", "deadline", "full", "slots", "", "none", "odd"} {
		if Reason(code, "minute") == "" || Reason(code, "") == "" || strings.Contains(Reason(code, ""), "minute") {
			t.Errorf("%q has no words", code)
		}
	}
}
