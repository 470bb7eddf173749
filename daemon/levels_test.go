package daemon_test

import (
	"fmt"
	"testing"
	"time"
)

const wide = `resources: {api: {limits: [{name: hour, size: 100000/h}], light: "off", breaker: "off"}}
shares: "off"
`

// left asks for a ticket, and returns the remaining amount in the response.
func (r *rig) left(agent string) int {
	r.Helper()
	out := r.want(200, "POST", "/v1/tickets", fmt.Sprintf(`{"resource":"api","agent":%q}`, agent))
	limits, _ := out["limits"].([]any)
	if len(limits) != 1 {
		r.Fatalf("%v", out)
	}
	n, _ := limits[0].(map[string]any)["remaining"].(float64)
	return int(n)
}

// A grant reports what is left after it. In a large fleet it reports what was left a moment ago.
func TestLevelsOfGrants(t *testing.T) {
	r := begin(t, "generic", wide, nil)
	for i := range 20 {
		if left := r.left(fmt.Sprintf("a%d", i)); left != 99_999-i {
			t.Errorf("after %d: %d", i+1, left)
		}
	}
	old := 0
	for i := 20; i < 1200; i++ {
		left := r.left(fmt.Sprintf("a%d", i))
		if left < 99_999-i || left > 99_980 || i < 490 && left != 99_999-i {
			t.Fatalf("after %d: %d", i+1, left)
		}
		if left > 99_999-i {
			old++
		}
	}
	if old == 0 {
		t.Error("it is read for each")
	}
	asked := 1200
	for end := time.Now().Add(30 * time.Second); ; asked++ { // it is read again, and again
		if left := r.left("a0"); left <= 99_999-1200 && left >= 99_999-asked {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it never changes")
		}
	}
}
