package config

import (
	"errors"
	"testing"
	"time"
)

// The parser never panics or hangs. A file that it accepts prints so that it reads the same, and can be opened.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "bad"} {
		for _, file := range files(f, dir) {
			f.Add(read(f, file))
		}
	}
	f.Add(Init())
	f.Fuzz(func(t *testing.T, src []byte) {
		began := time.Now()
		file, err := Parse("fuzz.yaml", src, environment)
		if took := time.Since(began); took > 10*time.Second {
			t.Fatalf("took %v", took)
		}
		if err != nil {
			var bad *ParseError
			if !errors.As(err, &bad) || bad.Message == "" {
				t.Fatalf("an error that says nothing: %v", err)
			}
			return
		}
		roundTrip(t, file)
		if len(file.Resources) < 20 {
			opens(t, file)
		}
	})
}

func TestInitParses(t *testing.T) {
	t.Parallel()
	f := parse(t, string(Init()))
	if f.Resources["github"].Provider != "github" {
		t.Errorf("got %+v", f)
	}
	opens(t, f)
}
