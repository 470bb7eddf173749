package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	dashboardFile = "../../deploy/grafana/sluice.json"
	alertsFile    = "../../deploy/prometheus/alerts.yml"
	docsFile      = "../../docs/metrics.md"
)

var (
	metricName = regexp.MustCompile(`\bsluice_[a-z0-9_]+`)
	selector   = regexp.MustCompile(`\b(sluice_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\bby \(([^)]*)\) \(`)
)

// known returns the metrics by the names that queries use.
func known() map[string]family {
	all := map[string]family{}
	for _, f := range New(Options{}).families {
		if !f.histogram {
			all[f.name] = f
			continue
		}
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			all[f.name+end] = f
		}
	}
	return all
}

// checkQuery checks that the metrics and labels of a query exist, and returns those metrics.
func checkQuery(t *testing.T, all map[string]family, query string) (used []string) {
	t.Helper()
	if strings.Count(query, "(") != strings.Count(query, ")") || strings.Count(query, "{") != strings.Count(query, "}") {
		t.Errorf("brackets do not match: %s", query)
	}
	labels := map[string]bool{"instance": true, "le": strings.Contains(query, "_bucket")}
	for _, name := range metricName.FindAllString(query, -1) {
		f, ok := all[name]
		if !ok {
			t.Errorf("there is no %s: %s", name, query)
			continue
		}
		used = append(used, f.name)
		for _, l := range f.labels {
			labels[l] = true
		}
	}
	if len(used) == 0 {
		t.Errorf("no metric of ours: %s", query)
	}
	for _, m := range selector.FindAllStringSubmatch(query, -1) {
		for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
			if f, ok := all[m[1]]; ok && !slices.Contains(f.labels, l[1]) {
				t.Errorf("%s has no label %s: %s", m[1], l[1], query)
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(query, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); !labels[l] {
				t.Errorf("no metric there has a label %s: %s", l, query)
			}
		}
	}
	return used
}

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ X, Y, W, H int }
	var board struct {
		UID, Title string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     place
			Targets     []struct{ RefID, Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	all, shown, ids, taken := known(), map[string]bool{}, map[int]bool{}, map[place]string{}
	for _, v := range board.Templating.List {
		if v.Definition != "" {
			checkQuery(t, all, v.Definition)
		}
	}
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s: the id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if by := taken[place{X: x, Y: y}]; by != "" {
					t.Fatalf("%s lies on %s", p.Title, by)
				}
				taken[place{X: x, Y: y}] = p.Title
			}
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is beyond the edge", p.Title)
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("%s shows nothing, or does not say what", p.Title)
		}
		for _, q := range p.Targets {
			for _, name := range checkQuery(t, all, q.Expr) {
				shown[name] = true
			}
		}
	}
	if board.UID == "" || board.Title == "" || len(shown) < 40 {
		t.Errorf("%q %q shows %d metrics", board.UID, board.Title, len(shown))
	}
}

func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	all, names := known(), []string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
			if !strings.Contains(string(docs), "| `"+r.Alert+"` | ") {
				t.Errorf("not described: %s", r.Alert)
			}
			checkQuery(t, all, r.Expr)
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s does not say how bad it is, or what to do", r.Alert)
			}
		}
	}
	for _, want := range []string{"SluiceThrottled", "SluiceBudgetNearlyUsed", "SluiceStoreDegraded", "SluiceOutsideUse", "SluiceFailing", "SluiceUpstreamErrors", "SluiceBillingStop", "SluiceDegraded", "SluiceBudgetUsedUp", "SluiceLeasesLost"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no alert %s", want)
		}
	}
}

// TestDocs checks that the documentation names all metrics with their labels, and no others.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	all, plain := known(), map[string]family{}
	for _, f := range all {
		plain[f.name] = f
	}
	for _, f := range plain {
		labels := make([]string, len(f.labels))
		for i, l := range f.labels {
			labels[i] = "`" + l + "`"
		}
		if row := "| `" + f.name + "` | " + strings.Join(labels, ", ") + " |"; !strings.Contains(string(text), strings.Replace(row, "|  |", "| |", 1)) {
			t.Errorf("not described: %s", row)
		}
	}
	for _, name := range metricName.FindAllString(string(text), -1) {
		if _, ok := all[name]; !ok && plain[name].name == "" {
			t.Errorf("there is no %s", name)
		}
	}
}
