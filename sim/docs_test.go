package sim

import (
	"os"
	"strings"
	"testing"
)

// The scenario files in the documentation run as they are.
func TestDocumentedScenariosCanBeRun(t *testing.T) {
	page, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```yaml\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("only %d files in the documentation", len(blocks))
	}
	for _, block := range blocks {
		src, _, _ := strings.Cut(block, "```")
		sc, err := Parse("docs.yaml", strings.NewReader(src))
		if err != nil {
			t.Error(err)
			continue
		}
		t.Run(sc.Name, func(t *testing.T) {
			f := alone(t, sc, LightTail, 1)
			t.Logf("%+v", f)
			if f.Finished < f.Calls*99/100 || len(f.Starved) > 0 {
				t.Errorf("sluice finished %d of %d calls, starved %v", f.Finished, f.Calls, f.Starved)
			}
		})
	}
}
