package filestore

import "testing"

func TestOffsetOfATimeNamespace(t *testing.T) {
	for text, want := range map[string]int64{
		"monotonic           0         0\nboottime            0         0\n": 0,
		"monotonic      950400         0\nboottime       864000 500000000\n": 864_000_500_000_000,
		"monotonic           0         0\nboottime          -10         5\n": -9_999_999_995,
		"": 0, "boottime": 0, "boottime x y\n": 0,
	} {
		if got := bootOffset(text); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}
