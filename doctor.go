package sluice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/audit"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// Diagnose audits every resource: what its callers have sent since a moment, on average and at their peak, the sum
// compared with the quota, and which settings to change.
func (g *Gate) Diagnose(ctx context.Context, since time.Time) (inspect.Diagnosis, error) {
	d := inspect.Diagnosis{Resources: []inspect.ResourceDiagnosis{}}
	v, err := g.look(ctx, false)
	if err != nil {
		return d, err
	}
	cycles := v.graph.Cycles()
	for i, name := range v.names {
		r := g.resources[name]
		h, err := r.history(ctx, since)
		if err != nil {
			return d, err
		}
		d.Resources = append(d.Resources, r.diagnose(&v.snaps[i], &h, cycles))
	}
	return d, nil
}

func (r *resource) diagnose(snap *store.Snapshot, h *store.History, cycles [][]string) inspect.ResourceDiagnosis {
	rep := r.report(h)
	d := inspect.ResourceDiagnosis{Name: r.name, Quotas: r.quotas(snap), Advice: []inspect.Advice{}}
	d.FullestNow, d.Full = r.fullest(snap, h)
	facts := r.facts(snap)
	facts.Audit = audit.Weigh(&d, rep.Callers)
	d.Unanswered = facts.Unanswered
	facts.Callers, facts.Over, facts.Cycles = len(d.Callers), d.Judged.Window.Microseconds(), cycles
	facts.Urgent, facts.Highest = audit.Urgent(&d), r.settings.className(0)
	if len(cycles) > 0 {
		facts.Others = r.settings.waitsBesides(cycles[0])
	}
	facts.Sent, facts.Refused, facts.Fullest = d.Sent, d.Refused, d.Fullest
	for _, a := range policy.Advise(facts) {
		d.Advice = append(d.Advice, inspect.Advice(a))
	}
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Scope != "" || r.differs(l) == "" {
			continue
		}
		d.Advice = append(d.Advice, inspect.Advice{
			Setting: fmt.Sprintf("resources.%s.limits.%s", r.configured(), l.Limit),
			Text: fmt.Sprintf("%d is in force, as %s states it; this configuration says %d. Where members differ the smaller one holds: give all the same",
				l.Size, r.differs(l), sizeOf(r.limit(l.Limit))),
			YAML: r.limitYAML(l),
		})
	}
	if a, ok := r.silence(snap); ok {
		d.Advice = append(d.Advice, a)
	}
	return d
}

// silence returns the advice about silent processes, whose shares the others cannot use.
func (r *resource) silence(snap *store.Snapshot) (inspect.Advice, bool) {
	silent := 0
	for i := range snap.Members {
		if snap.Members[i].Silent {
			silent++
		}
	}
	if silent == 0 {
		return inspect.Advice{}, false
	}
	who := fmt.Sprintf("%d of %d processes have", silent, len(snap.Members))
	if silent == 1 {
		who = fmt.Sprintf("1 of %d processes has", len(snap.Members))
	}
	kept := ""
	for i := range snap.Limits {
		if l := &snap.Limits[i]; l.Scope == "" && l.Withheld > 0 {
			kept += fmt.Sprintf(", %d of %s", l.Withheld, l.Limit)
		}
	}
	if kept != "" {
		kept = " (" + kept[2:] + ")"
	}
	return inspect.Advice{
		Setting: "leases.expire",
		Text: fmt.Sprintf("%s not reported to the store for more than 3 s. They were killed, or they are cut off and continue within their shares. Their shares%s are withheld from other processes until "+
			"a lease and one window are over. If they were killed, a shorter lease frees the shares sooner. If they were cut off, check the network between them and the store", who, kept),
		YAML: r.settings.shorterLease(),
	}, true
}

// quotas returns the limits on requests that all callers share. If there is none, it returns the limits per model and
// key, each as the sum over all of them. If no limit counts requests, it uses the limits with the unit of the first
// limit.
func (r *resource) quotas(snap *store.Snapshot) (shared []inspect.Quota) {
	var scoped []inspect.Quota
	at := map[string]int{}
	c := clockAt(snap.Now)
	r.eachQuota(snap, func(l *store.LimitState, perMin float64) {
		q := quotaOf(l, perMin, c)
		i, there := at[l.Limit]
		switch {
		case l.Scope == "":
			shared = append(shared, q)
		case there:
			scoped[i].PerMin += perMin
		default:
			at[l.Limit], scoped = len(scoped), append(scoped, q)
		}
	})
	if len(shared) > 0 {
		return shared
	}
	return scoped
}

func quotaOf(l *store.LimitState, perMin float64, c clock) inspect.Quota {
	q := inspect.Quota{PerMin: perMin, Window: l.Window}
	if reset := c.moment(resetOf(l)); reset != nil && l.Kind == Fixed {
		q.Reset = *reset
	}
	return q
}

// eachQuota calls f with every known limit on requests that all callers share, or all callers of one model or key.
func (r *resource) eachQuota(snap *store.Snapshot, f func(l *store.LimitState, perMin float64)) {
	unit := Requests
	if t := r.total(snap); t != nil {
		unit = r.limit(t.Limit).Unit
	}
	for i := range snap.Limits {
		l := &snap.Limits[i]
		def := r.limit(l.Limit)
		if def == nil || l.Size == 0 || l.Window <= 0 || def.Unit != unit || def.Kind == Concurrency || def.Per&^store.Shared != 0 {
			continue
		}
		size := l.Size
		if l.Kind == Bucket && def.Burst > 0 && def.Burst != def.Size { // the rate, not the capacity
			if size = def.Size; size == 0 {
				continue // a response has stated its rate, which the snapshot does not tell
			}
		}
		f(l, float64(size)*time.Minute.Seconds()/l.Window.Seconds())
	}
}

// fullest returns the limit that is used most, and the used part of it, which may be more than 1. A limit counts by
// what was sent for its model in its busiest window. It counts as full if nothing is left of it now, or if a request
// waits for it. A concurrency limit does not count: requests that wait for a place are what it is for.
func (r *resource) fullest(snap *store.Snapshot, h *store.History) (fullest string, most float64) {
	more := func(limit, scope string, part float64) {
		if part > most {
			fullest, most = scoped(limit, scope), part
		}
	}
	c := clockAt(h.Now)
	sent, minutes := modelMinutes(h, c), map[string]bool{}
	r.eachQuota(snap, func(l *store.LimitState, perMin float64) {
		minutes[l.Limit] = l.Window >= time.Minute && l.Window <= 2*time.Minute // the busiest minute says more than one moment
		if model, ok := strings.CutPrefix(l.Scope, "model="); ok {
			q := quotaOf(l, perMin, c)
			more(l.Limit, l.Scope, float64(audit.Most(sent[model], &q))/max(q.Window, time.Minute).Minutes()/perMin)
		}
	})
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if l.Size > 0 && l.Remaining == 0 && l.Used > 0 && (!minutes[l.Limit] || l.Used > l.Size) && !fullByOne(l) && r.isQuota(l.Limit) {
			more(l.Limit, l.Scope, max(float64(l.Used)/float64(l.Size), 1))
		}
	}
	for i := range snap.Queue {
		if w := &snap.Queue[i].Reason; w.Code == store.CodeLimit && r.isQuota(w.Limit) {
			more(w.Limit, "", 1)
		}
	}
	return fullest, most
}

// isQuota reports whether a limit is known here, shared, and counts requests or units instead of open tickets.
func (r *resource) isQuota(limit string) bool {
	l := r.limit(limit)
	return l != nil && l.Per&^store.Shared == 0 && l.Kind != Concurrency
}

// scoped names a limit with its scope.
func scoped(limit, scope string) string {
	if scope == "" {
		return limit
	}
	return limit + " (" + scope + ")"
}

// fullByOne reports whether a single send has filled a limit for a moment, such as one of 1/s. That is no contention.
func fullByOne(l *store.LimitState) bool { return l.Used == 1 && l.Window <= time.Minute }

// modelMinutes returns what was sent for each model in each minute.
func modelMinutes(h *store.History, c clock) map[string]map[time.Time]int64 {
	sent := map[string]map[time.Time]int64{}
	for i := range h.Periods {
		p := &h.Periods[i]
		if sent[p.Model] == nil {
			sent[p.Model] = map[time.Time]int64{}
		}
		sent[p.Model][c.minute(p.Start)] += p.Sent
	}
	return sent
}

// facts returns the facts that advice is based on.
func (r *resource) facts(snap *store.Snapshot) policy.Facts {
	f := policy.Facts{Resource: r.configured(), Provider: r.provider(), TTL: r.ttl.Microseconds(), Throttled7d: snap.Throttled7d, Observed: r.observe, Use: int(r.use), HeaderTime: snap.HeaderTime.Microseconds()}
	if r.past { // it is not observed any more
		f.Throttled7d, f.Observed = 0, false
	}
	if len(r.limits) == 0 {
		f.Unknown = []policy.Stated{{}}
	}
	for i := range snap.Limits {
		l := &snap.Limits[i]
		if def := r.limit(l.Limit); def != nil && !ours(def) && (!def.Plan || l.Size != 0) {
			addFacts(&f, def, l, clockAt(snap.Now))
		}
	}
	f.Unknown = slices.DeleteFunc(f.Unknown, func(of policy.Stated) bool { // known of another model is known
		return slices.ContainsFunc(snap.Limits, func(l store.LimitState) bool { return l.Size > 0 && l.Limit == of.Name })
	})
	return f
}

// configured returns the name of the resource in a configuration.
func (r *resource) configured() string {
	if r.other {
		return inspect.ResourceOf(r.name)
	}
	return r.name
}

// provider returns the provider of the resource in a configuration, or empty if it has none.
func (r *resource) provider() string {
	if r.settings.provider == nil {
		return ""
	}
	return r.settings.provider(r.configured())
}

// countedAs says in words how a limit is counted.
func countedAs(k Kind, window time.Duration) string {
	if k == Bucket {
		return "a bucket that refills in " + spanWords(window)
	}
	return "a " + k.String() + " window of " + spanWords(window)
}

// spanWords formats a window for a sentence.
func spanWords(window time.Duration) string {
	switch s := span(window); s {
	case "min":
		return "a minute"
	case "h":
		return "an hour"
	case "day":
		return "a day"
	default:
		return s
	}
}

// span formats a window as in a configuration.
func span(window time.Duration) string {
	switch window {
	case time.Minute:
		return "min"
	case time.Hour:
		return "h"
	case 24 * time.Hour:
		return "day"
	}
	if window < time.Second {
		return window.Round(time.Millisecond).String()
	}
	return window.Round(time.Second).String()
}

// statedAs returns how a configuration states a limit with another kind, window and size.
func statedAs(def *store.Limit, k Kind, window time.Duration, size int64) policy.Stated {
	l := policy.Stated{Name: def.Name, Size: fmt.Sprintf("%d/%s", size, span(window)), Kind: k.String()}
	if def.Unit != Requests {
		l.Unit = def.Unit
	}
	return l
}

// limitYAML returns the line of a configuration that gives a limit the size that is in force.
func (r *resource) limitYAML(l *store.LimitState) string {
	def := r.limit(l.Limit)
	value := statedAs(def, def.Kind, def.Window, l.Size).String()
	if def.Kind == Concurrency {
		value = fmt.Sprintf("{name: %s, concurrency: %d}", policy.Word(def.Name), l.Size)
	}
	return policy.ResourceYAML(r.configured(), r.provider(), "limits", "["+value+"]")
}

// addFacts adds the facts about one of the provider's limits.
func addFacts(f *policy.Facts, def *store.Limit, l *store.LimitState, c clock) {
	name := def.Name
	if def.Kind != Concurrency {
		f.GuardOff = f.GuardOff || def.Guard == store.GuardOff
		f.GuardStrict = f.GuardStrict || def.Guard == store.GuardStrict
		if w := def.Window.Microseconds(); def.Guard == store.GuardStrict && (f.Window == 0 || w < f.Window) {
			f.Window = w
		}
	}
	if l.Size == 0 {
		if !slices.ContainsFunc(f.Unknown, func(s policy.Stated) bool { return s.Name == name }) { // it may have one meter per model
			f.Unknown = append(f.Unknown, statedAs(def, def.Kind, def.Window, 80))
		}
		return
	}
	if part := float64(l.Outside) / float64(l.Size); part > f.Outside {
		f.Outside, f.OutsideLimit, f.OutsideFlow = part, name, def.Kind != Fixed
	}
	if l.Kind != def.Kind || l.Window != def.Window {
		f.Recounted, f.Assumed = name, countedAs(def.Kind, def.Window)
		f.Counted, f.CountedAs = countedAs(l.Kind, l.Window), statedAs(def, l.Kind, l.Window, l.Size)
	}
	if l.StatedLeft > 0 {
		f.Free, f.FreeAs = name, policy.Stated{}
		f.FreeStated = fmt.Sprintf("%d of %d free and everything back in %v", l.StatedLeft, l.Size, l.StatedIn)
		f.FreeHeld = fmt.Sprintf("%d used of %s", l.Used, countedAs(l.Kind, l.Window))
		if used := l.Size - l.StatedLeft; used > 0 && l.StatedIn > 0 {
			f.FreeAs = statedAs(def, Bucket, time.Duration(float64(l.StatedIn)*float64(l.Size)/float64(used)), l.Size)
		}
	}
	if l.Hold.Full && f.Unanswered == "" {
		f.Unanswered, f.UnansweredOf = scoped(name, l.Scope), l.Hold.By
		f.UnansweredHold = heldWords(l.Hold.By, l.Hold.Tickets, c.time(l.Hold.Until))
	}
	if slack := l.Slack.Microseconds(); l.Widened && slack > f.Slack {
		f.Slack, f.SlackLimit = slack, name
	}
	if l.Cut > f.Cut {
		f.Cut, f.CutLimit = l.Cut, name
	}
	if l.Breaker.Tripped {
		f.BreakerLimit, f.BreakerUntil = name, c.time(resetOf(l)).Format(time.RFC3339)
	}
}
