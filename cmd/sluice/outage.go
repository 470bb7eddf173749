package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// meanwhile says what on_store_failure makes a process do. The status of an outage says what one does now.
var meanwhile = map[string]string{
	"share": "holds requests for 3 s, then goes on within its share if it has one", "closed": "holds all requests", "open": "sends all requests without limits",
}

// outage describes that the store cannot be reached, and what happens in the meantime.
func (s *screen) outage(o *inspect.OutageStatus) string {
	text := "the store is out of reach"
	if o.Since != nil {
		text = "the store has been out of reach for " + show.Span(max(s.now.Sub(*o.Since), 0).Truncate(time.Second))
	}
	text += ": " + s.Text(o.Why, textWidth)
	if o.Meanwhile != "" {
		text += "; this process " + s.Text(o.Meanwhile, reasonWidth)
	}
	if o.Granted > 0 {
		text += fmt.Sprintf(" (%s sent so far)", show.Count(o.Granted))
	}
	return s.Paint(show.Amber, text)
}

// silence describes which processes have stopped reporting, and what is kept for them; empty if all report.
func (s *screen) silence(r *inspect.ResourceStatus) string {
	var kept []string
	for i := range r.Limits {
		if l := &r.Limits[i]; l.Withheld > 0 {
			kept = append(kept, show.Count(l.Withheld)+" of "+strings.TrimSuffix(l.Name+" "+l.Scope, " "))
		}
	}
	var text string
	switch {
	case r.SilentMembers == 1:
		text = fmt.Sprintf("1 of %d processes does not report", r.Members)
	case r.SilentMembers > 1:
		text = fmt.Sprintf("%d of %d processes do not report", r.SilentMembers, r.Members)
	case len(kept) > 0:
		text = "some processes do not report"
	default:
		return ""
	}
	if len(kept) > 0 {
		text += ", withheld for them: " + s.Names(kept, ", ", 6, nameWidth)
	}
	return s.Paint(show.Amber, text)
}

// outages counts how often processes of this machine have lost the store in a period.
type outages struct {
	lost    int
	lastAt  time.Time
	lastWhy string
	mode    string        // mode of the last outage
	longest time.Duration // of the outages that are over
	granted int64         // requests granted during outages that are over
}

// readOutages counts the outages of each resource in the event log.
func readOutages(s *session, from time.Time) (map[string]*outages, error) {
	all, ours := map[string]*outages{}, s.ours()
	err := eventlog.ReadKinds(s.dir, from, []string{inspect.EventStoreLost, inspect.EventStoreBack}, func(e inspect.Event) bool {
		if !eventlog.IsOf(&e, ours) {
			return true
		}
		o := all[e.Resource]
		if o == nil {
			o = &outages{}
			all[e.Resource] = o
		}
		o.mode = e.Mode
		if e.Kind == inspect.EventStoreLost {
			o.lost++
			o.lastAt, o.lastWhy = e.Time, e.Error
			return true
		}
		o.longest = max(o.longest, time.Duration(e.ForMS)*time.Millisecond)
		o.granted += e.Count
		return true
	})
	return all, err
}

// advice returns the advice about these outages.
func (o *outages) advice() inspect.Advice {
	text := "Processes of this machine lost the store " + times(o.lost) + " in this period"
	if o.lost == 0 { // the outage began before the period
		text = "Processes of this machine had lost the store before this period"
	} else {
		text += ", the last time at " + o.lastAt.UTC().Format(time.RFC3339)
		if o.lastWhy != "" {
			text += " (" + o.lastWhy + ")"
		}
	}
	if o.longest > 0 {
		text += "; the longest outage took " + show.Span(o.longest)
	}
	if o.granted > 0 {
		text += "; " + show.Some(o.granted, "request was", "requests were") + " sent without it"
	}
	if does := meanwhile[o.mode]; does != "" {
		text += ". Meanwhile, with on_store_failure: " + o.mode + ", each " + does
	}
	text += ". Check the store and the network to it. docs/redis.md lists the choices for on_store_failure."
	return inspect.Advice{Setting: "on_store_failure", Text: text, YAML: "on_store_failure: " + cmp.Or(o.mode, "share") + " # or share, closed, open"}
}
