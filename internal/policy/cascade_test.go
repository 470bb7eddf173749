package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// waits reads "a>b,c d>a": a waits for b and c, d for a.
func waits(s string) map[string][]string {
	m := make(map[string][]string)
	for _, part := range strings.Fields(s) {
		agent, list, _ := strings.Cut(part, ">")
		m[agent] = strings.Split(list, ",")
	}
	return m
}

func TestCascadeHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, waits, limited, want string }{
		{"nobody is limited", "a>b b>c", "", ""},
		{"upstream, not downstream", "a>b b>c c>d", "c", "a>b>c b>c c"},
		{"a leaf that nobody has heard of", "a>ghost", "b", "b"},
		{"one that is not alive and limited", "a>b", "b", "a>b b"},
		{"the shortest", "a>b,c b>d c>e d>f e>f", "e,f", "a>c>e b>d>f c>e d>f e f"},
		{"the first by name", "a>z,y y>l z>l", "l", "a>y>l l y>l z>l"},
		{"the first by the first step", "a>b,c b>z c>d", "d,z", "a>b>z b>z c>d d z"},
		{"limited, and waits for one that is", "a>b", "a,b", "a b"},
		{"a circle", "a>b b>c c>a", "c", "a>b>c b>c c"},
		{"a circle that waits", "a>b b>a,c", "c", "a>b>c b>c c"},
		{"itself", "a>a", "", ""},
		{"twice", "a>b,b", "b", "a>b b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := Graph{Waits: waits(c.waits), Limited: map[string]string{}}
			for _, name := range strings.FieldsFunc(c.limited, func(r rune) bool { return r == ',' }) {
				g.Limited[name] = "limit of " + name
			}
			var got []string
			holds := g.Holds()
			for _, agent := range holds.Agents() {
				hold, _ := holds.Of(agent)
				got = append(got, strings.Join(hold.Chain, ">"))
				if want := "limit of " + hold.Chain[len(hold.Chain)-1]; hold.Reason != want {
					t.Errorf("the reason is %q, want %q", hold.Reason, want)
				}
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
}

func TestCascadeCycles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ waits, want string }{
		{"a>b b>c", ""},
		{"a>a", "a"},
		{"b>a a>b", "a>b"},
		{"x>c c>b b>a a>c", "a>c>b"},
		{"a>b b>a,c c>d d>c", "a>b c>d"},
		{"a>b b>c,d c>a d>e e>a", "a>b>c"}, // one group, its shortest circle
		{"a>b b>c c>b", "b>c"},
		{"a>c,b b>a c>a", "a>b"},
		{"a>b b>a,b", "a>b"},
	} {
		var got []string
		for _, cycle := range (Graph{Waits: waits(c.waits)}).Cycles() {
			got = append(got, strings.Join(cycle, ">"))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.waits, s, c.want)
		}
	}
}

func TestCascadeReportsSoManyCyclesAndNoMore(t *testing.T) {
	t.Parallel()
	g := Graph{Waits: map[string][]string{}}
	for i := range 3 * MaxCycles {
		name := fmt.Sprintf("%04d", i)
		g.Waits[name] = []string{name}
	}
	cycles := g.Cycles()
	if len(cycles) != MaxCycles || cycles[0][0] != "0000" || cycles[MaxCycles-1][0] != "0099" {
		t.Errorf("%d cycles, from %v to %v", len(cycles), cycles[0], cycles[len(cycles)-1])
	}
}

// A chain of a hundred thousand agents, then a circle of them, and as many agents that wait for its far end. The
// algorithms must not recurse or be quadratic.
func TestCascadeIsLinear(t *testing.T) {
	t.Parallel()
	const n = 100_000
	name := make([]string, 2*n)
	for i := range name {
		name[i] = fmt.Sprintf("%06d", i)
	}
	g := Graph{Waits: make(map[string][]string, n), Limited: map[string]string{name[n-1]: "minute"}}
	for i := range n - 1 {
		g.Waits[name[i]] = name[i+1 : i+2]
	}
	if hold, ok := g.HoldOf(name[0]); !ok || len(hold.Chain) != n {
		t.Errorf("the chain has %d names", len(hold.Chain))
	}
	g.Waits[name[n-1]] = name[:1]
	if cycles := g.Cycles(); len(cycles) != 1 || !slices.Equal(cycles[0], name[:n]) {
		t.Errorf("%d cycles", len(cycles))
	}
	for i := range n {
		g.Waits[name[n+i]] = name[:1]
	}
	holds := g.Holds()
	if hold, ok := holds.Of(name[n]); !ok || len(hold.Chain) != n+1 || holds.Len() != 2*n {
		t.Errorf("the chain has %d names, %d hold", len(hold.Chain), holds.Len())
	}
}

func drawGraph(t *rapid.T) Graph {
	n := rapid.IntRange(1, 9).Draw(t, "agents")
	name := rapid.Custom(func(t *rapid.T) string { return string(rune('a' + rapid.IntRange(0, n-1).Draw(t, "agent"))) })
	g := Graph{Waits: map[string][]string{}, Limited: map[string]string{}}
	for range rapid.IntRange(0, 2*n).Draw(t, "edges") {
		a := name.Draw(t, "from")
		g.Waits[a] = append(g.Waits[a], name.Draw(t, "to"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "limits") {
		l := name.Draw(t, "limited")
		g.Limited[l] = "limit of " + l
	}
	return g
}

// ways returns every simple way of n steps from an agent.
func (g Graph) ways(agent string, n int) [][]string {
	if n == 0 {
		return [][]string{{agent}}
	}
	var all [][]string
	for _, other := range g.Waits[agent] {
		for _, way := range g.ways(other, n-1) {
			if !slices.Contains(way, agent) {
				all = append(all, append([]string{agent}, way...))
			}
		}
	}
	return all
}

// best is the shortest way to a limited agent, the first by names, found by trying
// all.
func (g Graph) best(agent string) []string {
	for n := range 10 {
		ways := slices.DeleteFunc(g.ways(agent, n), func(way []string) bool {
			_, limited := g.Limited[way[n]]
			return !limited
		})
		if len(ways) > 0 {
			return slices.MinFunc(ways, slices.Compare)
		}
	}
	return nil
}

func TestCascadeNamesTheBestChain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		holds := g.Holds()
		for i := range 9 {
			agent := string(rune('a' + i))
			want := g.best(agent)
			got, held := holds.Of(agent)
			if held != (want != nil) || !slices.Equal(got.Chain, want) {
				t.Fatalf("%s: %v, want %v", agent, got.Chain, want)
			}
			if held && got.Reason != g.Limited[want[len(want)-1]] {
				t.Fatalf("%s: the reason is %q", agent, got.Reason)
			}
			one, held1 := g.HoldOf(agent)
			if held1 != held || !slices.Equal(one.Chain, got.Chain) || one.Reason != got.Reason {
				t.Fatalf("%s: alone %v, with all %v", agent, one.Chain, got.Chain)
			}
		}
	})
}

// within returns who is reached from an agent in one step or more.
func (g Graph) within(agent string) map[string]bool {
	seen := make(map[string]bool)
	for queue := slices.Clone(g.Waits[agent]); len(queue) > 0; queue = queue[1:] {
		if !seen[queue[0]] {
			seen[queue[0]] = true
			queue = append(queue, g.Waits[queue[0]]...)
		}
	}
	return seen
}

func TestCascadeReportsEachGroupOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		cycles := g.Cycles()
		reach := make(map[string]map[string]bool)
		first := make(map[string]bool) // of each group, the first name
		for i := range 9 {
			agent := string(rune('a' + i))
			reach[agent] = g.within(agent)
			first[agent] = reach[agent][agent]
			for other := range maps.Keys(reach) {
				if other < agent && reach[agent][other] && reach[other][agent] {
					first[agent] = false
				}
			}
		}
		last := ""
		for _, cycle := range cycles {
			if !first[cycle[0]] || cycle[0] <= last || slices.Min(cycle) != cycle[0] {
				t.Fatalf("%v does not begin with the first of a group not reported yet", cycle)
			}
			delete(first, cycle[0])
			last = cycle[0]
			for i, agent := range cycle {
				if !slices.Contains(g.Waits[agent], cycle[(i+1)%len(cycle)]) {
					t.Fatalf("%v is not a cycle", cycle)
				}
			}
			if slices.Sort(cycle); len(slices.Compact(cycle)) != len(cycle) {
				t.Fatalf("%v passes an agent twice", cycle)
			}
		}
		for agent, missed := range first {
			if missed {
				t.Fatalf("the cycle of %s is not reported", agent)
			}
		}
	})
}
