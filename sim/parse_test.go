package sim_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// Each file in testdata/bad is a scenario with one mistake, next to a file with its error. SLUICE_UPDATE=1 rewrites the
// errors.
func TestParseErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = sim.Parse(filepath.Base(file), strings.NewReader(string(src)))
			var bad *sim.ParseError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a ParseError", err)
			}
			got := bad.Error() + "\n" + bad.Excerpt + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if os.Getenv("SLUICE_UPDATE") != "" {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

const smallest = "name: x\nprovider: {limits: [{name: m, size: 10/min}]}\nagents: [{name: a}]\n"

// Files that were once accepted by mistake, or took minutes and gigabytes to refuse.
func TestParseRefusesQuickly(t *testing.T) {
	for what, src := range map[string]string{
		"deeply nested lists":         "name: " + strings.Repeat("[", 200_000),
		"deeply nested, closed":       "name: " + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000),
		"deeply nested mappings":      strings.Repeat("{", 200_000),
		"a second document":           smallest + "---\nname: y\n",
		"control characters (C1)":     "about: \"\\u009b31m\"\n" + smallest,
		"control characters (a bell)": "about: \"\\a\"\n" + smallest,
	} {
		began := time.Now()
		_, err := sim.Parse("x.yaml", strings.NewReader(src))
		var bad *sim.ParseError
		if !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want a ParseError", what, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: refused after %v", what, took)
		}
	}
	for _, src := range []string{smallest, smallest + "---\n", "---\n" + smallest, smallest + "...\n"} {
		if _, err := sim.Parse("x.yaml", strings.NewReader(src)); err != nil {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]sim.Rate{
		"80/min": {80, time.Minute}, "500/h": {500, time.Hour}, "30/4s": {30, 4 * time.Second},
		"10_000/day": {10_000, 24 * time.Hour}, "5 / s": {5, time.Second}, "7/15min": {7, 15 * time.Minute},
	} {
		if got, err := sim.ParseRate(s); err != nil || got != want {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", "80", "/min", "80/", "0/min", "-1/min", "1.5/min", "80/0s", "80/fortnight", "80/min/s",
		"99999999999999999999/min", "1/9999999999h", "80/32d", "80/4",
	} {
		if got, err := sim.ParseRate(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, got)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"80/min", "30/4s", "10_000/day", "1/", "9/9999d", "1/1ms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := sim.ParseRate(s)
		if err != nil {
			return
		}
		if r.N < 1 || r.Window < time.Millisecond {
			t.Fatalf("%q: %v", s, r)
		}
		if again, err := sim.ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%q: %v is written as %s, which reads as %v, %v", s, r, r, again, err)
		}
	})
}

func FuzzParseScenario(f *testing.F) {
	f.Add(everything)
	for _, sc := range []string{"six-committers", "five-pipelines", "overnight", "research", "squad"} {
		src, err := os.ReadFile("scenarios/" + sc + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		sc, err := sim.Parse("fuzz.yaml", strings.NewReader(src))
		if err != nil {
			var bad *sim.ParseError
			if !errors.As(err, &bad) || bad.Message == "" {
				t.Fatalf("an error that says nothing: %v", err)
			}
			return
		}
		// Every limit that passes can be built.
		for _, l := range sc.Limits {
			l.Rule()
		}
		if len(sc.Fleet) == 0 || sc.Horizon <= 0 {
			t.Fatalf("an empty scenario passed: %+v", sc)
		}
	})
}
