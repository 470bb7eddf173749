package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// group is the work of one caller for one model.
type group struct {
	caller, model string
	class         int
	calls         int
	follows       int // calls that waited for another call
	first, last   time.Duration
	input, output int64
	sizes         []float64 // tokens of each call
	atOnce        int
}

// Scenario returns a scenario file for sluice simulate and sluice demo: a fleet like the log's, with the same limits.
// It states mean sizes and times, not each call.
func (r *Replay) Scenario() ([]byte, error) {
	var b bytes.Buffer
	name := "replay"
	fmt.Fprintf(&b, "# Written by sluice replay: a fleet like that of a log, with its means.\nname: %s\n", name)
	fmt.Fprintf(&b, "about: %q\n", fmt.Sprintf("%d calls of %d callers in %s, from a log in the format %s",
		len(r.work.calls), len(r.work.callers), time.Duration(r.logged().DurationS*float64(time.Second)).Round(time.Second), r.log.Format))
	b.WriteString("provider:\n  limits:\n")
	for i := range r.sc.Limits {
		fmt.Fprintf(&b, "    - %s\n", limitYAML(&r.sc.Limits[i], true))
	}
	b.WriteString("  retry_after: true\n")
	var service, body []float64
	for i := range r.sc.Recorded {
		service = append(service, r.sc.Recorded[i].Service.Seconds())
		body = append(body, r.sc.Recorded[i].Body.Seconds())
	}
	for _, d := range []struct {
		name string
		of   []float64
	}{{"service", service}, {"body", body}} {
		if median, sigma := lognormal(d.of); median > 0 {
			fmt.Fprintf(&b, "  %s: {median: %s, sigma: %.2f}\n", d.name, time.Duration(median*float64(time.Second)).Round(time.Microsecond), sigma)
		}
	}
	usd := 0.0
	for _, p := range r.prices {
		usd += p
	}
	if usd > 0 {
		fmt.Fprintf(&b, "price: %s\n", strconv.FormatFloat(round(usd/float64(len(r.prices))), 'f', -1, 64))
	}
	fmt.Fprintf(&b, "horizon: %s\n", min(4*time.Duration(r.logged().DurationS)*time.Second+time.Hour, 31*24*time.Hour))
	b.WriteString("agents:\n")
	names := map[string]bool{}
	for _, g := range r.groups() {
		fmt.Fprintf(&b, "  - {name: %q, class: %s, ", unique(names, g.caller), r.className(g.class))
		if 2*g.follows >= g.calls-g.atOnce { // its workers continue when a call has finished
			fmt.Fprintf(&b, "calls: %d, ", g.calls)
		} else {
			fmt.Fprintf(&b, "jobs: %d, every: %s, ", g.calls, ((g.last - g.first) / time.Duration(max(g.calls-1, 1))).Round(time.Millisecond))
		}
		fmt.Fprintf(&b, "start: %s, workers: %d", g.first.Round(time.Millisecond), min(g.atOnce, 10_000))
		if g.model != "" {
			fmt.Fprintf(&b, ", model: %q", name64(g.model))
		}
		n := int64(max(g.calls, 1))
		if g.input+g.output > 0 {
			_, sigma := lognormal(g.sizes)
			fmt.Fprintf(&b, ", input_tokens: %d, output_tokens: %d, spread: %.2f", g.input/n, g.output/n, min(sigma, 2))
		}
		b.WriteString("}\n")
	}
	if _, err := sim.Parse("the scenario", bytes.NewReader(b.Bytes())); err != nil {
		return nil, fmt.Errorf("no scenario can be made of this log: %w", err)
	}
	return b.Bytes(), nil
}

// className returns a class that scenarios know: one of the first three.
func (r *Replay) className(class int) string { return sim.Classes[min(class, len(sim.Classes)-1)].Name }

// groups returns the work of the callers, most calls first.
func (r *Replay) groups() []*group {
	at := map[key]*group{}
	var all []*group
	most := r.atOnce()
	for i := range r.work.calls {
		c, rec := &r.work.calls[i], &r.sc.Recorded[i]
		k := key{c.caller, rec.Request.Model}
		g := at[k]
		if g == nil {
			g = &group{caller: r.sc.Fleet[c.caller].Name, model: rec.Request.Model, class: r.sc.Fleet[c.caller].Class, first: rec.At, atOnce: most[c.caller]}
			at[k] = g
			all = append(all, g)
		}
		g.calls++
		if c.follows >= 0 {
			g.follows++
		}
		g.first, g.last = min(g.first, rec.At), max(g.last, rec.At)
		g.input, g.output = g.input+rec.Request.Input, g.output+rec.Request.Output
		g.sizes = append(g.sizes, float64(rec.Request.Input+rec.Request.Output))
	}
	slices.SortStableFunc(all, func(a, b *group) int { return cmp.Compare(b.calls, a.calls) })
	return all[:min(len(all), MaxCallers)]
}

// lognormal returns the log-normal distribution that fits positive values.
func lognormal(values []float64) (median, sigma float64) {
	var logs []float64
	for _, v := range values {
		if v > 0 {
			logs = append(logs, math.Log(v))
		}
	}
	if len(logs) == 0 || 2*len(logs) < len(values) {
		return 0, 0
	}
	mean, squares := 0.0, 0.0
	for _, x := range logs {
		mean += x / float64(len(logs))
	}
	for _, x := range logs {
		squares += (x - mean) * (x - mean) / float64(len(logs))
	}
	return math.Exp(mean), min(math.Sqrt(squares), 5)
}

// limitYAML returns a limit in the syntax of scenarios and configurations.
func limitYAML(l *sim.Limit, scenario bool) string {
	s := fmt.Sprintf("{name: %q, ", name64(l.Name))
	if l.Kind == store.Concurrency {
		return s + fmt.Sprintf("concurrency: %d}", l.Size)
	}
	s += "size: " + sim.Rate{N: l.Size, Window: l.Window}.String()
	switch l.Kind {
	case store.Bucket:
		s += fmt.Sprintf(", burst: %d", l.Burst)
	case store.Fixed:
		s += ", kind: fixed"
		if scenario && l.Phase > 0 {
			s += ", first_reset: " + l.Phase.Round(time.Millisecond).String()
		}
	}
	if l.Unit != sim.Requests {
		s += ", unit: " + l.Unit
	}
	if l.PerModel {
		s += ", per: [model]"
	}
	return s + "}"
}

// name64 returns a name that scenarios and configurations accept.
func name64(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '/', c == '-':
			return c
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, "._/-")
	return cmp.Or(s[:min(len(s), 60)], "caller")
}

// unique returns a name that no other agent has.
func unique(taken map[string]bool, name string) string {
	name = name64(name)
	one := name
	for n := 2; taken[one]; n++ {
		one = name[:min(len(name), 52)] + "-" + itoa(n)
	}
	taken[one] = true
	return one
}

// Config returns a configuration for the log's callers: the limits of the replay, and a class for each caller.
func (r *Replay) Config() []byte {
	var b bytes.Buffer
	dialect := r.dialect()
	resource := name64(cmp.Or(r.log.Resource, dialect, "api"))
	b.WriteString("# Written by sluice replay. Start with mode: observe, compare with sluice report, then remove the line.\n")
	if r.fitted {
		b.WriteString("# These limits explain the log's refusals best. Prefer what the provider states.\n")
	}
	fmt.Fprintf(&b, "resources:\n  %q:\n", resource)
	if dialect != "" {
		fmt.Fprintf(&b, "    provider: %s\n", dialect)
	} else {
		b.WriteString("    # sluice serve needs the address of the API: fill it in and remove the # in front.\n    # upstream: https://api.example.com\n")
	}
	b.WriteString("    mode: observe\n    limits:\n")
	for i := range r.sc.Limits {
		fmt.Fprintf(&b, "      - %s\n", limitYAML(&r.sc.Limits[i], false))
	}
	if slices.Equal(r.setup.Classes, sim.Classes) {
		b.WriteString("agents:\n  \"*\": {class: p2}\n")
		taken := map[string]bool{"*": true}
		for _, c := range r.byCaller() {
			if taken[c.Name] {
				continue
			}
			taken[c.Name] = true
			if !agentName.MatchString(c.Name) {
				fmt.Fprintf(&b, "  # %q cannot be the name of an agent\n", c.Name)
				continue
			}
			class, why := r.suggest(&c)
			fmt.Fprintf(&b, "  %q: {class: %s} # %s\n", c.Name, class, why)
		}
	}
	return b.Bytes()
}

// agentName matches the names of agents that a configuration accepts.
var agentName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// suggest returns a class for a caller: the stated one, or a lower one for callers that send much at once.
func (r *Replay) suggest(c *CallerFigures) (class, why string) {
	switch {
	case c.Class != sim.Classes[len(sim.Classes)-1].Name:
		return c.Class, "as stated"
	case c.AtOnce >= 4 || 2*c.Calls > len(r.work.calls) && len(r.work.callers) > 1:
		return "p2", fmt.Sprintf("%d calls, up to %d at once: a batch", c.Calls, c.AtOnce)
	}
	return "p1", fmt.Sprintf("%d calls, up to %d at once; p0 is for people", c.Calls, c.AtOnce)
}

// dialect returns the provider of most of the log's models, or an empty string if it is unknown.
func (r *Replay) dialect() string {
	n := map[string]int{}
	for i := range r.log.Sends {
		model := strings.ToLower(r.log.Sends[i].Named)
		switch {
		case strings.Contains(model, "claude"):
			n["anthropic"]++
		case strings.Contains(model, "gpt-"), strings.HasPrefix(model, "o1"), strings.HasPrefix(model, "o3"), strings.HasPrefix(model, "o4"):
			n["openai"]++
		case strings.Contains(model, "gemini"):
			n["gemini"]++
		}
	}
	for name, count := range n {
		if 2*count > len(r.log.Sends) {
			return name
		}
	}
	return ""
}
