package wire

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/store"
)

// Operations got new fields but the version stayed: a daemon and a caller of different builds misread each other.
func TestTheVersionFollowsTheLayout(t *testing.T) {
	type op struct {
		Kind    uint8
		Amounts [4]int64
		Names   []string
	}
	type more struct {
		Kind    uint8
		Amounts [4]int64
		Names   []string
		Key     string
	}
	type wider struct {
		Kind    uint8
		Amounts [5]int64
		Names   []string
	}
	seen := map[string]string{}
	for name, types := range map[string][]reflect.Type{
		"op": {reflect.TypeFor[op]()}, "a field more": {reflect.TypeFor[more]()}, "a longer list": {reflect.TypeFor[wider]()}, "two": {reflect.TypeFor[op](), reflect.TypeFor[op]()},
	} {
		v := versionOf(types...)
		if other, twice := seen[v]; twice {
			t.Errorf("%s and %s have the version %s", name, other, v)
		}
		seen[v] = name
	}
	t.Logf("this version speaks %s", Version)
	if !strings.HasPrefix(Version, base) {
		t.Errorf("this version speaks %s", Version)
	}
}

// A daemon's answer with a result that no store has written, or cannot write, is rejected.
func TestResultsOutOfRangeAreCorrupt(t *testing.T) {
	for name, r := range map[string]store.Result{
		"none": {}, "state": {State: store.Unknown + 1}, "code": {State: store.Refused, Reason: store.Reason{Code: store.CodeSlowed + 1}},
		"behind": {State: store.Refused, Reason: store.Reason{Behind: 200}},
		"limit":  {State: store.Refused, Reason: store.Reason{Limit: strings.Repeat("l", store.MaxName+1)}},
	} {
		ops := make([]store.Op, 1)
		if err := ReadResults(AppendResults(nil, []store.Op{{Result: r}}), ops); err != ErrCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}
