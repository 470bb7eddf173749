package provider

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// drawLimits draws limits as the standard can state them, with names of any printable
// text.
func drawLimits(t *rapid.T) []Limit {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ -~]{1,32}`), 1, maxLimits, rapid.ID[string]).Draw(t, "names")
	all := make([]Limit, len(names))
	for i, name := range names {
		l := newLimit(name)
		l.Size = rapid.Int64Range(1, store.MaxAmount).Draw(t, "size")
		l.Remaining = rapid.Int64Range(-1, l.Size).Draw(t, "remaining")
		l.Window = time.Duration(rapid.Int64Range(0, 31*86400).Draw(t, "window")) * time.Second
		most := int64(MaxReset / time.Second)
		if l.Window > 0 {
			most = int64(l.Window / time.Second)
		}
		if reset := rapid.Int64Range(-1, most).Draw(t, "reset"); reset >= 0 {
			l.ResetIn = time.Duration(reset) * time.Second
		}
		if rapid.Bool().Draw(t, "bytes") {
			l.Unit = "content_bytes"
		}
		all[i] = l
	}
	return all
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// formatDraft08 writes limits as drafts 08 and later do.
func formatDraft08(all []Limit) (policy, state string) {
	var p, s []string
	for _, l := range all {
		one := fmt.Sprintf("%s;q=%d", quote(l.Name), l.Size)
		if l.Unit != sluice.Requests {
			one += ";qu=" + quote("content-bytes")
		}
		if l.Window > 0 {
			one += fmt.Sprintf(";w=%d", l.Window/time.Second)
		}
		p = append(p, one)
		one = quote(l.Name)
		if l.Remaining >= 0 {
			one += fmt.Sprintf(";r=%d", l.Remaining)
		}
		if l.ResetIn >= 0 {
			one += fmt.Sprintf("; t=%d", l.ResetIn/time.Second)
		}
		s = append(s, one)
	}
	return strings.Join(p, ", "), strings.Join(s, ",")
}

func TestDraft08ReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawLimits(t)
		policy, state := formatDraft08(want)
		for len(policy) > maxValue || len(state) > maxValue { // as many as are read
			want = want[:len(want)-1]
			policy, state = formatDraft08(want)
		}
		o := Generic{}.Observe(&Response{Status: 200, Header: map[string][]string{"RateLimit-Policy": {policy}, "RATELIMIT": {state}}}, made)
		if !reflect.DeepEqual(o.Limits, want) || o.Ignored != 0 {
			t.Fatalf("%s\n%s\nread %+v\nwant %+v\n%d ignored", policy, state, o.Limits, want, o.Ignored)
		}
	})
}

func TestOlderDraftsReadWhatTheyWrite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawLimits(t)[:1]
		l := &want[0]
		l.Name, l.Unit = "", sluice.Requests
		l.Remaining, l.ResetIn = max(l.Remaining, 0), max(l.ResetIn, 0)
		l.Window = max(l.Window, l.ResetIn, time.Second)
		policy := fmt.Sprintf("%d;w=%d", l.Size, l.Window/time.Second)
		size, remaining, reset := fmt.Sprint(l.Size), fmt.Sprint(l.Remaining), fmt.Sprint(int64(l.ResetIn/time.Second))
		for draft, h := range map[string]map[string][]string{
			"07": {"RateLimit": {"limit=" + size + ", remaining=" + remaining + ", reset=" + reset}, "RateLimit-Policy": {policy}},
			"06": {"RateLimit-Limit": {size}, "RateLimit-Remaining": {remaining}, "RateLimit-Reset": {reset}, "RateLimit-Policy": {policy}},
			"03": {"RateLimit-Limit": {size + ", " + policy}, "RateLimit-Remaining": {remaining}, "RateLimit-Reset": {reset}},
		} {
			o := Generic{}.Observe(&Response{Status: 200, Header: h}, made)
			if !reflect.DeepEqual(o.Limits, want) || o.Ignored != 0 {
				t.Fatalf("draft %s: %v\nread %+v\nwant %+v", draft, h, o.Limits, want)
			}
		}
	})
}
