package money

import "testing"

func TestMicros(t *testing.T) {
	for text, want := range map[string]int64{"0.02": 20_000, "2": 2_000_000, "0": 0, "1e-3": 1000, "0.30000000000000004": 300_000, "0.0000004": 0, "1000": 1_000_000_000} {
		if got, err := Micros(text); err != nil || got != want {
			t.Errorf("%s is %d %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "-0.01", "1000.01", "31200", "NaN", "Inf", "1e400", "0x", "\"1\""} {
		if got, err := Micros(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
	if got := Text(20_000); got != "0.02" {
		t.Error(got)
	}
}
