package eventlog

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// ticketLife is how long after its grant a ticket can be answered. Reports read events from that much earlier, to know
// the agent of each answer.
const ticketLife = store.MaxTTL

// Report returns the sends since a moment according to the log alone: those of this machine's processes that log to
// dir. What a resource sent in mode observe is listed as NAME (observed).
func Report(dir string, since time.Time) (inspect.Report, error) {
	t := newTally(since, func(string, time.Time, bool) bool { return true })
	rep := inspect.Report{Since: since.UTC(), Resources: []inspect.ResourceReport{}}
	if err := t.read(dir, nil); err != nil {
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

// Complete adds to a store's report what only the log knows: sends from before the store's history begins, sends
// without the store, and all costs. The peak per second is the larger of the two. Only events of the given stores count,
// as [IsOf] says.
func Complete(rep *inspect.Report, dir string, since time.Time, stores ...string) error {
	begins := map[string]time.Time{}
	for _, r := range rep.Resources {
		begins[cmp.Or(r.Pool, r.Name)] = r.Since
	}
	t := newTally(since, func(pool string, at time.Time, observed bool) bool {
		begin, known := begins[pool]
		return known && (observed || at.Before(begin))
	})
	if err := t.read(dir, stores); err != nil {
		return err
	}
	for i := range rep.Resources {
		one := &rep.Resources[i]
		r := t.resources[cmp.Or(one.Pool, one.Name)]
		if r == nil {
			continue
		}
		r.addTo(one)
		if r.first.IsZero() { // only costs and the like were counted: the store has the sends
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

// addTo adds the counts to a report.
func (r *resourceTally) addTo(rep *inspect.ResourceReport) {
	if rep.ThrottledMinutes == nil {
		rep.ThrottledMinutes = map[time.Time]int64{}
	}
	for minute, n := range r.throttled {
		rep.ThrottledMinutes[minute] += n
	}
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

// addUnits adds more to to, or subtracts it if sign is -1.
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
