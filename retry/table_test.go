package retry_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/sluicehq/sluice/retry"
)

// TestTable uses the same table as the clients in Python and TypeScript.
func TestTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	type policy struct {
		Attempts int                   `json:"attempts"`
		Deadline float64               `json:"deadline_ms"`
		Base     float64               `json:"base_ms"`
		Cap      float64               `json:"cap_ms"`
		Windows  map[string][2]float64 `json:"windows"`
	}
	var table struct {
		Next []struct {
			Name    string
			Policy  policy
			Random  float64
			Failure struct {
				Sent    int
				Elapsed float64 `json:"elapsed_ms"`
				Class   string
				Hint    *float64 `json:"hint_ms"`
				Held    bool
			}
			Want struct {
				Wait   float64 `json:"wait_ms"`
				Give   bool
				Reason string
			}
		}
	}
	if err := json.Unmarshal(text, &table); err != nil || len(table.Next) < 20 {
		t.Fatal(len(table.Next), err)
	}
	span := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	for _, c := range table.Next {
		p := retry.Policy{Attempts: c.Policy.Attempts, Deadline: span(c.Policy.Deadline), Base: span(c.Policy.Base), Cap: span(c.Policy.Cap)}
		if c.Policy.Windows != nil {
			p.Windows = map[string]retry.Window{}
			for class, w := range c.Policy.Windows {
				p.Windows[class] = retry.Window{Min: span(w[0]), Max: span(w[1])}
			}
		}
		f := retry.Failure{Sent: c.Failure.Sent, Elapsed: span(c.Failure.Elapsed), Class: c.Failure.Class, Held: c.Failure.Held}
		if c.Failure.Hint != nil {
			f.Hint, f.Hinted = span(*c.Failure.Hint), true
		}
		got := p.Next(f, func() float64 { return c.Random })
		if got.Give != c.Want.Give || got.Reason.String() != c.Want.Reason || !got.Give && got.Wait != span(c.Want.Wait) {
			t.Errorf("%s: %+v, want %+v", c.Name, got, c.Want)
		}
	}
}
