package redisstore_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/store/redisstore"
)

// A failure inside the script names the function and its source in Go.
func TestAFailureNamesItsSource(t *testing.T) {
	t.Parallel()
	source := redisstore.Source()
	before, _, found := strings.Cut(source, "F.pool_Pool_FastLot = function")
	if !found {
		t.Fatal("the script has no FastLot")
	}
	line := strings.Count(before, "\n") + 1
	for text, want := range map[string]string{
		"ERR user_script:" + strconv.Itoa(line+3) + ": attempt to index a nil value script: 5f, on @user_script:9.":            "; in pool_Pool_FastLot, internal/pool/lots.go:",
		"ERR user_function:" + strconv.Itoa(line+4) + ": attempt to index a nil value script: sluice_5f, on @user_function:9.": "; in pool_Pool_FastLot, internal/pool/lots.go:",
		"ERR something else": "",
	} {
		if got := redisstore.WhereIn(source, text); got != want && (want == "" || !strings.HasPrefix(got, want)) {
			t.Errorf("%s: %q", text, got)
		}
	}
}
