package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/nearest"
	"github.com/sluicehq/sluice/internal/strictyaml"
	"github.com/sluicehq/sluice/store"
)

// checker finds mistakes that the types of the fields cannot catch.
type checker struct {
	doc  *strictyaml.Doc
	file *File
}

var (
	join  = strictyaml.Join
	index = strictyaml.Index
)

func (c *checker) fail(path, format string, args ...any) strictyaml.Note {
	return c.doc.Fail(path, format, args...)
}

// secret reports a mistake in a field that may hold a secret. The message shows no excerpt of the file.
func (c *checker) secret(path, message string) strictyaml.Note {
	return c.fail(path, "%s", message).Hide()
}

// sorted returns the keys of m in the order in which the checker visits them.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// stated checks the values that the file states. It runs before Defaults, which would hide the missing ones.
func (c *checker) stated() {
	f := c.file
	c.between("slots.max", int64(f.Slots.Max), 1, store.MaxSlots)
	c.between("retry.attempts", int64(f.Retry.Attempts), 1, 1000)
	c.between("dead_letters.max_body", f.DeadLetters.MaxBody, 1, deadletter.MaxBody)
	if f.DeadLetters.KeyEnv != "" {
		c.env("dead_letters.key_env", f.DeadLetters.KeyEnv)
	}
	for _, name := range sorted(f.Resources) {
		r, path := f.Resources[name], join("resources", name)
		c.between(path+".max_waiting", int64(r.MaxWaiting), 1, maxWaiting)
		c.between(path+".max_meters", int64(r.MaxMeters), 10, store.MaxMeters)
		c.between(path+".breaker.samples", int64(r.Breaker.Samples), 3, store.MaxSamples)
		c.between(path+".backoff.factor", int64(r.Backoff.Factor), 1, 100)
		for i, l := range r.Limits {
			c.between(index(path+".limits", i)+".burst", l.Burst, 1, store.MaxAmount)
			c.between(index(path+".limits", i)+".concurrency", l.Concurrency, 1, store.MaxAmount)
		}
	}
	for _, tool := range sorted(f.Tools) {
		c.label(join("tools", tool), "tool", tool)
		c.between(join("tools", tool), f.Tools[tool], 0, store.MaxAmount)
	}
}

// related checks fields against each other, with defaults filled in.
func (c *checker) related() {
	c.store()
	c.listen()
	c.tls()
	c.upstreamCA()
	c.classes()
	c.leases()
	c.retry()
	for _, name := range sorted(c.file.Resources) {
		r := c.file.Resources[name]
		c.resource(name, &r)
	}
	for _, name := range sorted(c.file.Agents) {
		c.agent(name, c.file.Agents[name])
	}
	c.budgets()
	c.routes()
	c.prices()
	c.tokens()
	c.url("alerts.webhook", c.file.Alerts.Webhook, true)
}

func (c *checker) classes() {
	f := c.file
	if n := len(f.Classes); n > store.MaxClasses {
		c.fail("classes", "%d classes are more than %d", n, store.MaxClasses)
	}
	sum := 0
	for _, class := range f.Classes {
		c.key(join("classes", class.Name), "class", class.Name)
		sum += int(class.Share)
	}
	if sum > 100 {
		c.fail("classes", "the shares add up to %d%%, more than 100%%", sum)
	}
}

func (c *checker) leases() {
	l, s := c.file.Leases, c.file.Slots
	if !l.Off {
		c.span("leases.renew", l.Renew, time.Second, store.MaxTTL)
		c.span("leases.expire", l.Expire, time.Second, store.MaxTTL)
		if l.Renew >= l.Expire {
			c.fail("leases.renew", "agents would be taken for dead between two heartbeats: renew (%s) has to be shorter than expire (%s)",
				c.bare("leases.renew", l.Renew), c.bare("leases.expire", l.Expire))
		}
	}
	if s.Off {
		return
	}
	c.span("slots.ttl", s.TTL, time.Second, store.MaxTTL)
	switch {
	case l.Off:
		c.fail("slots", "slots are kept by heartbeats, and leases are off").Hint("remove leases: off, or the slots")
	case s.TTL <= l.Renew:
		c.fail("slots.ttl", "a slot would be lost between two heartbeats: ttl (%s) has to be longer than leases.renew (%s)",
			c.bare("slots.ttl", s.TTL), c.bare("leases.renew", l.Renew))
	}
}

func (c *checker) retry() {
	f := c.file
	for _, class := range sorted(f.RetryWindows) {
		path, w := join("retry_windows", class), f.RetryWindows[class]
		c.known(c.doc.FailKey, path, class)
		switch {
		case w == Window{}:
			c.fail(path, "this has to be %s", w.Expected())
		case w[0] > w[1]:
			c.fail(path, "the first time is the shortest wait, the second the longest: %s is longer than %s",
				c.bare(index(path, 0), w[0]), c.bare(index(path, 1), w[1]))
		default:
			c.span(index(path, 1), w[1], 0, store.MaxTTL)
		}
	}
	c.span("retry.deadline", f.Retry.Deadline, time.Millisecond, store.MaxTTL)
	c.span("retry.base", f.Retry.Base, time.Millisecond, store.MaxTTL)
	c.span("retry.cap", f.Retry.Cap, time.Millisecond, store.MaxTTL)
	if f.Retry.Cap < f.Retry.Base {
		c.fail("retry.cap", "the longest wait (%s) is shorter than the first (base: %s)", c.bare("retry.cap", f.Retry.Cap), c.bare("retry.base", f.Retry.Base))
	}
}

// between checks that a number stated in the file is within low and high.
func (c *checker) between(path string, n, low, high int64) {
	if c.doc.Has(path) && (n < low || n > high) {
		c.fail(path, "%s is not between %d and %d", c.bare(path, n), low, high)
	}
}

// span checks that a time is within low and high.
func (c *checker) span(path string, d Duration, low, high time.Duration) {
	if time.Duration(d) < low || time.Duration(d) > high {
		c.fail(path, "%s is not between %s and %s", c.bare(path, d), Duration(low), Duration(high))
	}
}

// bare formats a value that needs no quotes. A value that came from a variable is shown as the file writes it.
func (c *checker) bare(path string, v any) string {
	return strings.Trim(c.doc.Shown(path, fmt.Sprint(v)), `"`)
}

// class checks that the field at path names a configured class.
func (c *checker) class(path, name string) {
	if name != "" || c.doc.Has(path) {
		c.known(c.doc.Fail, path, name)
	}
}

func (c *checker) known(fail func(string, string, ...any) strictyaml.Note, path, name string) {
	if c.file.Classes.has(name) {
		return
	}
	names := make([]string, len(c.file.Classes))
	for i := range names {
		names[i] = c.file.Classes[i].Name
	}
	c.suggest(fail(path, "%s is not one of the classes %s", c.doc.Shown(path, name), strings.Join(names, ", ")), path, name, names)
}

// suggest adds the name that was probably meant. It goes by the text in the file, because the values of variables may be secret.
func (c *checker) suggest(note strictyaml.Note, path, name string, names []string) {
	text, err := strconv.Unquote(c.shown(path, name))
	if meant := nearest.Name(text, names); err == nil && meant != "" {
		note.Hint(didYouMean(meant))
	}
}

var (
	nameRE = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)
	unitRE = lazyregexp.New(`^[a-z][a-z0-9_]*$`)
	envRE  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// name checks a name that can be part of a URL path.
func (c *checker) name(path, what, s string) { c.named(c.doc.Fail, path, what, s) }

// IsName reports whether s is a valid name for a resource, an agent, a token and the like.
func IsName(s string) bool { return len(s) <= 64 && nameRE.MatchString(s) }

// isLabel reports whether s is a name that comes from outside: up to 256 characters of ASCII without spaces.
func isLabel(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}

// isUnit reports whether s can be the name of a unit.
func isUnit(s string) bool { return len(s) <= 64 && unitRE.MatchString(s) }

// key checks a name that is the key of a mapping.
func (c *checker) key(path, what, s string) { c.named(c.doc.FailKey, path, what, s) }

func (c *checker) named(fail func(string, string, ...any) strictyaml.Note, path, what, s string) {
	if !IsName(s) {
		fail(path, "%s is not the name of %s", c.shown(path, s), an(what)).Hint("a name is 1 to 64 letters, digits, and any of . _ @ + -, a letter or digit first")
	}
}

// label checks a key whose name comes from outside, such as the name of a model.
func (c *checker) label(path, what, s string) {
	if !isLabel(s) {
		c.doc.FailKey(path, "%q is not the name of %s", s, an(what)).Hint("a name is 1 to 256 characters of ASCII without spaces")
	}
}

func (c *checker) shown(path, s string) string { return c.doc.Shown(path, s) }

func an(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}
