package eventlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// tickets can be answered for so long after they were granted: events are read from that much
// earlier on, to know whose they are.
const ticketLife = 10 * time.Minute

// Report tells what was sent since a moment according to the log alone: by processes of this
// machine that keep their files in dir.
func Report(dir string, since time.Time) (inspect.Report, error) {
	t := newTally(since, func(string, time.Time, bool) bool { return true })
	rep := inspect.Report{Since: since.UTC(), Resources: []inspect.ResourceReport{}}
	if err := t.read(dir); err != nil {
		return rep, err
	}
	for name, r := range t.resources {
		one := inspect.ResourceReport{Name: name, Since: r.first, Total: *newCaller(""), Callers: []inspect.CallerReport{}}
		r.addTo(&one)
		rep.Resources = append(rep.Resources, one)
		if since.IsZero() && (rep.Since.IsZero() || r.first.Before(rep.Since)) {
			rep.Since = r.first
		}
	}
	slices.SortFunc(rep.Resources, func(a, b inspect.ResourceReport) int { return cmp.Compare(a.Name, b.Name) })
	return rep, nil
}

// Complete adds to a store's report what only the log knows: what was sent before the store's
// memory begins, what the store was not asked about, and what it all cost. Peaks within a second are
// the larger ones of both.
func Complete(rep *inspect.Report, dir string, since time.Time) error {
	begins := map[string]time.Time{}
	for _, r := range rep.Resources {
		begins[r.Name] = r.Since
	}
	t := newTally(since, func(resource string, at time.Time, observed bool) bool {
		begin, known := begins[resource]
		return known && (observed || at.Before(begin))
	})
	if err := t.read(dir); err != nil {
		return err
	}
	for i := range rep.Resources {
		one := &rep.Resources[i]
		r := t.resources[one.Name]
		if r == nil {
			continue
		}
		r.addTo(one)
		if r.first.IsZero() { // only money was counted: the store knows the rest
			continue
		}
		if r.first.Before(one.Since) {
			one.Since = r.first
		}
		if since.IsZero() && one.Since.Before(rep.Since) {
			rep.Since = one.Since
		}
	}
	return nil
}

// addTo adds what was counted to a report.
func (r *resourceTally) addTo(rep *inspect.ResourceReport) {
	rep.Total.Add(r.total.done())
	r.total.nameIn(&rep.Total)
	at := map[string]int{}
	for i := range rep.Callers {
		at[rep.Callers[i].Name] = i
	}
	for name, c := range r.callers {
		i, known := at[name]
		if !known {
			rep.Callers = append(rep.Callers, *newCaller(name))
			i = len(rep.Callers) - 1
		}
		rep.Callers[i].Add(c.done())
		c.nameIn(&rep.Callers[i])
	}
	rep.Fold()
	rep.Sort()
}

// addUnits adds or, with a sign of -1, takes away.
func addUnits(to, more map[string]int64, sign int64) map[string]int64 {
	if to == nil {
		to = map[string]int64{}
	}
	for unit, n := range more {
		if was, ok := to[unit]; ok || n != 0 {
			to[unit] = was + sign*n
		}
	}
	return to
}
