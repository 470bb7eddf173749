package requestid

import (
	"net/http"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	for given, taken := range map[string]bool{
		"a": true, "req_011CS-x.y~z:1/2+3=@4": true, strings.Repeat("a", 128): true,
		"": false, strings.Repeat("a", 129): false, "a b": false, "a\nb": false, "<b>": false, `"`: false, "a\x00": false, "é": false, "a,b": false,
	} {
		answer := http.Header{}
		id := Set(answer, &http.Request{Header: http.Header{Header: {given}}})
		if (id == given) != taken || answer.Get(Header) != id || !Safe(id) || !taken && len(id) > 13 {
			t.Errorf("%q became %q, and the header %q", given, id, answer.Get(Header))
		}
	}
	seen := map[string]bool{}
	for range 1000 {
		seen[Set(http.Header{}, &http.Request{})] = true
	}
	if len(seen) != 1000 {
		t.Errorf("only %d of 1000 ids are different", len(seen))
	}
	two := &http.Request{Header: http.Header{Header: {"a", "b"}}}
	if id := Set(http.Header{}, two); id == "a" || id == "b" {
		t.Errorf("one of two was taken: %s", id)
	}
}
