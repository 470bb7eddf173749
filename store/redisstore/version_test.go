package redisstore_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/store/redisstore"
)

// The fields in testdata were written by "sluice acquire" of the last version with another layout. Such a pool is refused
// and not changed.
func TestAPoolOfARealOlderVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/version7.hex")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"HSET", "older:{api}"}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), " ")
		for _, part := range []string{field, value} {
			b, err := hex.DecodeString(part)
			if err != nil {
				t.Fatal(err)
			}
			args = append(args, string(b))
		}
	}
	do(t, single, args...)
	before := do(t, single, "HGET", "older:{api}", "q")
	if f := do(t, single, "HGET", "older:{api}", "f"); !strings.HasPrefix(f, "7-") {
		t.Fatalf("the pool has the form %q", f)
	}
	s, err := redisstore.Open(t.Context(), single.URL()+"?prefix=older")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spec := passing(guarded(10))
	spec.Name = "api"
	if _, err := s.Pool(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "made by another version of Sluice") {
		t.Errorf("opening it: %v", err)
	}
	if after := do(t, single, "HGET", "older:{api}", "q"); after != before {
		t.Errorf("it has changed: %q, was %q", after, before)
	}
}
