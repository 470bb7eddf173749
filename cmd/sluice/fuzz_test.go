package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// FuzzFlags reads any text as a length of time, a period and amounts. What is taken is within bounds, and amounts read the same from what
// they print.
func FuzzFlags(f *testing.F) {
	for _, text := range []string{"30", "1m30s", "-1s", "1e9", "NaN", "7d", "2w", "2026-01-31", "2026-01-31T08:00:00Z", "65535w", "input_tokens=1200,output_tokens=300", "a=1,a=2", "a=-1", "=1", "a=9223372036854775807", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d timeFlag
		if err := d.Set(text); err == nil && (d < 0 || time.Duration(d) > store.MaxWindow) {
			t.Errorf("%q is %v", text, time.Duration(d))
		}
		var s since
		if err := s.Set(text); err == nil && s.at.IsZero() && (s.ago <= 0 || s.ago > maxSince) {
			t.Errorf("%q is %v ago", text, s.ago)
		}
		var a, again amounts
		if err := a.Set(text); err != nil {
			return
		}
		for _, x := range a {
			if x.N < 0 || x.N > store.MaxAmount || x.Unit == "" || len(x.Unit) > store.MaxName {
				t.Errorf("%q is %+v", text, a)
			}
		}
		if err := again.Set(a.String()); err != nil || len(a) > maxAmounts || !reflect.DeepEqual(a, again) {
			t.Errorf("%q is %v, and %v from that (%v)", text, &a, &again, err)
		}
	})
}

// FuzzSavedReport compares with any file as a saved report.
func FuzzSavedReport(f *testing.F) {
	for _, text := range []string{
		`{"since":"2026-01-01T00:00:00Z","resources":[{"name":"api","total":{"first_sends":40,"retries":2,"throttled":1},"callers":[{"name":"a","first_sends":1}]}]}`,
		`{"since":"2026-01-01T00:00:00Z","resources":[{"name":"api","total":{"first_sends":-5,"throttled":9e18},"callers":null}]}`, `{"since":"2026-01-01T00:00:00Z","resources":[]}`, `{}`, `[`, `{"since":7}`,
	} {
		f.Add([]byte(text))
	}
	name := filepath.Join(f.TempDir(), "report.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := loadReport(name)
		if err != nil {
			return
		}
		if before.Since.IsZero() || before.Resources == nil {
			t.Errorf("%q is taken for a report", text)
		}
		list := compare(before, before, nil)
		if len(list) > len(before.Resources) {
			t.Errorf("%d comparisons of %d resources", len(list), len(before.Resources))
		}
	})
}
