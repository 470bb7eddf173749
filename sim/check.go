package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/strictyaml"
	"github.com/sluicehq/sluice/store"
)

// Bounds of a scenario, besides those of rates.
const (
	maxAgents = 100_000
	maxCalls  = 3_000_000
	maxSpan   = 31 * 24 * time.Hour // of any duration and of the whole run
	maxSigma  = 5
	maxPrice  = 1_000_000
	maxTokens = 1_000_000_000
)

var nameRE = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$`)

// checker converts a file to a scenario and keeps the first error.
type checker struct {
	doc *strictyaml.Doc
	err error
}

// fail records that the field at path is wrong.
func (c *checker) fail(path, format string, args ...any) {
	if c.err == nil {
		c.doc.Fail(path, format, args...)
		c.err = c.doc.Err()
	}
}

func (c *checker) scenario(f *fileScenario) *Scenario {
	sc := &Scenario{Name: f.Name, About: f.About, Price: f.Price, Attempts: f.Walls.Attempts}
	c.name("name", f.Name)
	if strings.ContainsFunc(f.About, unicode.IsControl) || len(f.About) > 200 {
		c.fail("about", "is one line of at most 200 bytes")
	}
	if !(f.Price >= 0 && f.Price <= maxPrice) {
		c.fail("price", "is in dollars, between 0 and %d", maxPrice)
	}
	c.between("walls.attempts", int64(f.Walls.Attempts), 0, 1000)
	sc.Deadline = c.duration("walls.deadline", f.Walls.Deadline, 0)
	sc.Horizon = c.duration("horizon", f.Horizon, 24*time.Hour)
	if sc.Horizon == 0 {
		c.fail("horizon", "has to be positive")
	}
	for i, name := range f.Compare {
		if !slices.Contains(Strategies(), name) {
			c.fail(fmt.Sprintf("compare[%d]", i), "%q is not one of %s", name, strings.Join(Strategies(), "; "))
		}
	}
	sc.Compare = f.Compare
	c.provider(sc, &f.Provider)
	c.fleet(sc, f.Agents)
	if c.err == nil {
		c.together(sc)
	}
	return sc
}

func (c *checker) fleet(sc *Scenario, agents []fileAgent) {
	if len(agents) == 0 {
		c.fail("agents", "at least one is needed")
	}
	names := map[string]bool{}
	for i := range agents {
		f := &agents[i]
		path := fmt.Sprintf("agents[%d].", i)
		c.positive(path+"count", int64(f.Count), maxAgents)
		c.positive(path+"machines", int64(f.Machines), max(int64(f.Count), 1))
		within := c.duration(path+"within", f.Within, 0)
		if c.err != nil {
			return
		}
		a := c.agent(path, f)
		for n := range max(f.Count, 1) {
			one := a
			one.Start += within * time.Duration(n) / time.Duration(max(f.Count, 1))
			one.Machine = fmt.Sprintf("machine-%d", n%max(f.Machines, 1)+1)
			if f.Count > 1 {
				one.Name = fmt.Sprintf("%s-%d", a.Name, n+1)
			}
			if names[one.Name] {
				c.fail(path+"name", "there is an agent called %s already", one.Name)
			}
			names[one.Name] = true
			sc.Fleet = append(sc.Fleet, one)
		}
		if len(sc.Fleet) > maxAgents {
			c.fail("agents", "%d agents are more than %d", len(sc.Fleet), maxAgents)
		}
		if n := sc.calls(); n > maxCalls {
			c.fail(path+"calls", "%d calls in all are more than %d", n, maxCalls)
		}
		if c.err != nil {
			return
		}
	}
}

func (c *checker) agent(path string, f *fileAgent) Agent {
	c.name(path+"name", f.Name)
	c.positive(path+"jobs", int64(f.Jobs), maxCalls)
	c.positive(path+"calls", int64(f.Calls), maxCalls)
	c.positive(path+"workers", int64(f.Workers), 10_000)
	c.between(path+"input_tokens", f.InputTokens, 0, maxTokens)
	c.between(path+"output_tokens", f.OutputTokens, 0, maxTokens)
	if !(f.Spread >= 0 && f.Spread <= 2) {
		c.fail(path+"spread", "is a sigma between 0 and 2")
	}
	if f.Model != "" {
		c.name(path+"model", f.Model)
	}
	if f.User != "" {
		c.name(path+"user", f.User)
	}
	a := Agent{
		Name: f.Name, User: f.User, Class: c.class(path+"class", f.Class),
		Jobs: max(f.Jobs, 1), Calls: max(f.Calls, 1), Workers: max(f.Workers, 1),
		Start: c.duration(path+"start", f.Start, 0), Every: c.duration(path+"every", f.Every, 0),
		Spread:  f.Spread,
		Request: Request{Model: f.Model, Input: f.InputTokens, Output: f.OutputTokens},
		Joined:  f.Joined || f.Joins != "", Joins: c.duration(path+"joins", f.Joins, 0),
	}
	switch f.Does {
	case "", "read":
	case "write":
		a.Request.Write = true
	case "create":
		a.Request.Write, a.Request.Create = true, true
	default:
		c.fail(path+"does", "%q is not one of read, write, create", f.Does)
	}
	return a
}

// class returns the index of a class. An empty name means the last class.
func (c *checker) class(path, name string) int {
	if name == "" {
		return len(Classes) - 1
	}
	i := slices.IndexFunc(Classes, func(k store.Class) bool { return k.Name == name })
	if i < 0 {
		c.fail(path, "%q is not one of p0, p1, p2", name)
	}
	return max(i, 0)
}

func (c *checker) name(path, s string) {
	if !nameRE.MatchString(s) {
		c.fail(path, "%q is not a name: 1 to 64 letters, digits, dots, dashes, underscores or slashes, a letter or digit first", s)
	}
}

func (c *checker) between(path string, n, low, high int64) {
	if n < low || n > high {
		c.fail(path, "%d is not between %d and %d", n, low, high)
	}
}

// positive checks a number that the file may leave out, but not set to 0.
func (c *checker) positive(path string, n, high int64) {
	if c.doc.Has(path) {
		c.between(path, n, 1, high)
	}
}

func (c *checker) duration(path, s string, absent time.Duration) time.Duration {
	if s == "" {
		return absent
	}
	d, err := strictyaml.ParseDuration(s)
	if err != nil {
		c.fail(path, "%v", err)
	} else if d < 0 || d > maxSpan {
		c.fail(path, "%s is not between 0 and %v", s, maxSpan)
	}
	return d
}
