package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

const small = `
name: small
horizon: 1h
about: two callers & one quota of "5 a second", <so to speak>
provider:
  limits:
    - {name: second, size: 5/s, burst: 5}
    - {name: quarter, size: 60/15min, kind: fixed, first_reset: 20s}
agents:
  - {name: one, class: p0, calls: 60, workers: 4}
  - {name: two, calls: 60, workers: 4}
`

func draw(t *testing.T, sc *sim.Scenario, rep *sim.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, sc, rep); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The picture of a small scenario, to the last byte. SLUICE_UPDATE=1 rewrites it.
func TestGolden(t *testing.T) {
	sc, err := sim.Parse("small.yaml", strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	rep, err := sim.Simulate(t.Context(), sc, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	// How the gate decides may get better; how it is drawn should not change with it.
	rep.Strategies = slices.DeleteFunc(rep.Strategies, func(f sim.Figures) bool { return f.Name == gate })
	got := draw(t, sc, rep)
	const golden = "testdata/small.svg"
	if os.Getenv("SLUICE_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the picture has changed: look at it, and if it is good run with SLUICE_UPDATE=1")
	}
	checkXML(t, got)
	checkText(t, got)
}

// large is a report with numbers as long as they get.
func large() (*sim.Scenario, *sim.Report) {
	sc := &sim.Scenario{
		Name: "large", About: strings.Repeat("very much to say ", 12),
		Limits: []sim.Limit{
			{Name: strings.Repeat("a-long-name-", 5), Kind: store.Rolling, Unit: sim.Requests, Size: 1_000_000, Window: time.Minute},
			{Name: strings.Repeat("another-one-", 5), Kind: store.Fixed, Unit: sim.InputTokens, Size: 5_000_000_000, Window: 24 * time.Hour},
		},
		Fleet: []sim.Agent{{Name: "a", Jobs: 1, Calls: 200_000, Workers: 1, Request: sim.Request{Input: 1}}},
	}
	rep := &sim.Report{Scenario: sc.Name, Seed: 1 << 63}
	for i, name := range sim.Strategies() {
		tr := &sim.Trace{
			Accepted: sim.Counts{Every: time.Minute}, Refused: sim.Counts{Every: time.Minute},
			Left: []sim.Gauge{{Limit: 1, Every: time.Hour}},
		}
		for k := range 40_000 {
			tr.Accepted.N = append(tr.Accepted.N, 900_000+k)
			tr.Refused.N = append(tr.Refused.N, i*k)
		}
		for k := range 600 {
			tr.Left[0].Share = append(tr.Left[0].Share, float64(k%24)/24)
		}
		rep.Strategies = append(rep.Strategies, sim.Figures{
			Name: name, Throttled: i * 2_900_000, Finished: 200_000 - i%2, Calls: 200_000, GaveUp: i % 2,
			Utilization: 1, Makespan: 743*3600 + 59*60 + 59 - float64(i)*1e5, Ideal: 250 * 3600, Starved: []string{"p0", "p1", "p2"},
			Classes: []sim.ClassFigures{{Name: "p0", Makespan: 2_600_000}, {Name: "p1", Makespan: 2_600_000}, {Name: "p2", Makespan: 2_600_000}},
			Trace:   tr,
		})
	}
	return sc, rep
}

func TestLargeNumbersFit(t *testing.T) {
	sc, rep := large()
	got := draw(t, sc, rep)
	checkXML(t, got)
	checkText(t, got)
	if len(got) > 200_000 {
		t.Errorf("the picture is %d bytes long", len(got))
	}
}

func TestNothingHappened(t *testing.T) {
	sc, rep := large()
	for i := range rep.Strategies {
		rep.Strategies[i] = sim.Figures{Name: rep.Strategies[i].Name, Trace: &sim.Trace{}}
	}
	got := draw(t, sc, rep)
	checkXML(t, got)
	if strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
		t.Error("there are numbers in it that are none")
	}
	rep.Strategies = nil
	checkXML(t, draw(t, sc, rep))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrorIsTold(t *testing.T) {
	sc, rep := large()
	if err := SVG(full{}, sc, rep); err == nil {
		t.Error("no error")
	}
}

// checkXML reads the picture as strictly as a browser does, and looks for what would be
// loaded from elsewhere.
func checkXML(t *testing.T, doc string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if slices.Contains([]string{"image", "script", "use", "foreignObject", "link"}, e.Name.Local) {
				t.Errorf("there is an element %s in it", e.Name.Local)
			}
		}
	}
	for _, outside := range []string{"href", "url(", "@import"} {
		if strings.Contains(doc, outside) {
			t.Errorf("it refers to the outside: %s", outside)
		}
	}
}

// checkText looks for words that run into each other or out of the picture, by a guess at how
// wide letters are.
func checkText(t *testing.T, doc string) {
	t.Helper()
	type box struct {
		x1, y1, x2, y2 float64
		text           string
	}
	var boxes []box
	d := xml.NewDecoder(strings.NewReader(doc))
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		e, ok := token.(xml.StartElement)
		if !ok || e.Name.Local != "text" {
			continue
		}
		attr := map[string]string{}
		for _, a := range e.Attr {
			attr[a.Name.Local] = a.Value
		}
		inner, _ := d.Token()
		text := string(inner.(xml.CharData))
		size, wide := 12.0, 0.6
		classes := strings.Fields(attr["class"])
		for class, s := range map[string]float64{"title": 20, "about": 13, "name": 13, "head": 11, "small": 11, "hour": 11, "ideal-label": 11, "tick": 10} {
			if slices.Contains(classes, class) {
				size = s
			}
		}
		w := wide * size * float64(len([]rune(text)))
		x, _ := strconv.ParseFloat(attr["x"], 64)
		y, _ := strconv.ParseFloat(attr["y"], 64)
		switch {
		case slices.Contains(classes, "end"), slices.Contains(classes, "tick") && !slices.Contains(classes, "share"):
			x -= w
		case slices.Contains(classes, "hour"), slices.Contains(classes, "ideal-label"):
			x -= w / 2
		}
		boxes = append(boxes, box{x, y - 0.7*size, x + w, y, text})
	}
	for i, a := range boxes {
		if a.x1 < 0 || a.x2 > width {
			t.Errorf("%q leaves the picture: %.0f to %.0f", a.text, a.x1, a.x2)
		}
		for _, b := range boxes[:i] {
			if a.x1 < b.x2 && b.x1 < a.x2 && a.y1 < b.y2 && b.y1 < a.y2 {
				t.Errorf("%q runs into %q, at %s", a.text, b.text, fmt.Sprintf("%.0f, %.0f", a.x1, a.y2))
			}
		}
	}
	if len(boxes) < 20 {
		t.Errorf("only %d texts", len(boxes))
	}
}
