package lazyregexp_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

func TestRegexp(t *testing.T) {
	t.Parallel()
	digits := lazyregexp.New(`([0-9])[0-9]`)
	if !digits.MatchString("a12") || digits.MatchString("a1") {
		t.Error("MatchString")
	}
	if m := digits.FindStringSubmatch("a12 34"); len(m) != 2 || m[1] != "1" {
		t.Errorf("FindStringSubmatch: %q", m)
	}
	if m := digits.FindAllStringSubmatch("a12 34", -1); len(m) != 2 || m[1][1] != "3" {
		t.Errorf("FindAllStringSubmatch: %q", m)
	}
	if s := digits.ReplaceAllString("a12", "$1"); s != "a1" {
		t.Errorf("ReplaceAllString: %q", s)
	}
	if s := digits.ReplaceAllStringFunc("a12", func(m string) string { return strings.Repeat(m, 2) }); s != "a1212" {
		t.Errorf("ReplaceAllStringFunc: %q", s)
	}
	if b := digits.ReplaceAll([]byte("a12"), []byte("x")); string(b) != "ax" {
		t.Errorf("ReplaceAll: %q", b)
	}
}

// A mistake in an expression must show when the tests of its package begin, not when a user comes to it.
func TestAMistakeShowsInTests(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	lazyregexp.New("(")
}
