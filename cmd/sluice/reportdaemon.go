package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store/remotestore"
)

// A session on the store of a daemon asks the daemon for what only the daemon's event log knows. Its own events are in the
// log of this machine, which may be the same one: then the daemon has counted them.

// isRemote reports whether the store is a daemon's.
func (s *session) isRemote() bool { return strings.HasPrefix(s.url, "http") }

// daemonReport returns the daemon's report by resource, and whether it has the events of this session.
// It returns nothing if the store is not a daemon's.
func (s *session) daemonReport(ctx context.Context, from time.Time) (told map[string]*resourceReportJSON, sameLog bool, err error) {
	if !s.isRemote() {
		return nil, false, nil
	}
	answer, err := remotestore.Report(ctx, s.url, from)
	if err != nil {
		return nil, false, err
	}
	var r reportJSON
	if err := json.Unmarshal(answer.JSON, &r); err != nil {
		return nil, false, fmt.Errorf("its report cannot be read: %w", err)
	}
	told = map[string]*resourceReportJSON{}
	for i := range r.Resources {
		told[r.Resources[i].Name] = &r.Resources[i]
	}
	return told, s.readsLog(&answer), nil
}

// readsLog reports whether a daemon made its answer with the events of this session: it reads the same log, and knows the
// address by which this session calls it.
func (s *session) readsLog(a *remotestore.Answer) bool {
	return len(a.EventLog) > 0 && a.EventLog[0] == s.logName(false) && slices.Contains(a.EventLog[1:], s.label)
}

// replace puts the daemon's figures into a report that the same store made. The time from which the store remembers sends
// stays: what this machine's log knows from before has to be added. So do the minutes of callers, of which the daemon
// tells only what the store does not know.
func (r *resourceReportJSON) replace(rep *inspect.ResourceReport) {
	minutes := map[string]map[time.Time]int64{}
	for i := range rep.Callers {
		minutes[rep.Callers[i].Name] = rep.Callers[i].Minutes
	}
	if len(r.Minutes) > 0 {
		rep.Total.Minutes, rep.ThrottledMinutes = map[time.Time]int64{}, map[time.Time]int64{}
	}
	for at, m := range r.Minutes {
		if m.Sends != 0 {
			rep.Total.Minutes[at.UTC()] = m.Sends
		}
		if m.Throttled != 0 {
			rep.ThrottledMinutes[at.UTC()] = m.Throttled
		}
	}
	rep.Total = withoutMoney(&r.Total, rep.Total.Minutes)
	rep.Callers = rep.Callers[:0]
	for i := range r.Callers {
		c := &r.Callers[i]
		sent := minutes[c.Name]
		if sent == nil {
			sent = map[time.Time]int64{}
		}
		for at, n := range c.Unstored {
			sent[at.UTC()] += n
		}
		rep.Callers = append(rep.Callers, withoutMoney(c, sent))
	}
}

// addMinutes adds the figures of each minute to a report.
func addMinutes(r *reportJSON) {
	for i := range r.Resources {
		one := &r.Resources[i]
		one.Minutes = map[time.Time]minuteJSON{}
		for at, n := range one.Total.Minutes {
			one.Minutes[at.UTC()] = minuteJSON{Sends: n}
		}
		for at, n := range one.throttled {
			m := one.Minutes[at.UTC()]
			m.Throttled = n
			one.Minutes[at.UTC()] = m
		}
		for j := range one.Callers {
			one.Callers[j].Unstored = one.Callers[j].LogMinutes
		}
	}
}

// withoutMoney is the reverse of withMoney, for a report that was read from JSON.
func withoutMoney(c *callerReport, minutes map[time.Time]int64) inspect.CallerReport {
	out := c.CallerReport
	out.Minutes = minutes
	micros := func(usd float64) int64 { return int64(math.Round(usd * 1e6)) }
	out.Micros, out.RetryMicros, out.HeldMicros = micros(c.USD), micros(c.RetryUSD), micros(c.HeldUSD)
	if t := c.Took; t != nil && t.N > 0 {
		n := float64(t.N)
		out.Answers, out.TookS = t.N, t.MeanS*n
		out.TookSquares = t.SDS*t.SDS*max(n-1, 1) + out.TookS*out.TookS/n
	}
	if out.First, out.Last = c.FirstSend, c.LastSend; !c.FirstSend.IsZero() {
		out.Logged = c.sends()
	}
	return out
}

// refused returns the last refusals, the latest first: those in this machine's event log and, if the store is a daemon's,
// those in the daemon's.
func (s *session) refused(ctx context.Context, names []string, of whose, now time.Time) ([]refusedJSON, error) {
	if of.ticket != "" {
		return []refusedJSON{}, nil // a refused request has no ticket
	}
	list, sameLog, err := s.daemonRefused(ctx, names, of)
	if err != nil {
		s.notes.Warn("the requests that the daemon refused are missing: " + err.Error())
	}
	if sameLog {
		return list, nil
	}
	own, err := s.readRefused(names, of, now)
	list = append(own, list...)
	slices.SortStableFunc(list, func(a, b refusedJSON) int { return b.Time.Compare(a.Time) })
	return list[:min(len(list), maxRefused)], err
}

// daemonRefused returns the last refusals that the daemon lists, the latest first, and whether they include the events of
// this session. It returns none if the store is not a daemon's.
func (s *session) daemonRefused(ctx context.Context, names []string, of whose) (list []refusedJSON, sameLog bool, err error) {
	if !s.isRemote() {
		return nil, false, nil
	}
	resource := ""
	if len(names) == 1 {
		resource = names[0]
	}
	answer, err := remotestore.Why(ctx, s.url, resource, of.agent)
	if err != nil {
		return nil, false, err
	}
	var told struct {
		Refused []refusedJSON `json:"refused"`
	}
	if err := json.Unmarshal(answer.JSON, &told); err != nil {
		return nil, false, err
	}
	if told.Refused == nil {
		return nil, false, errors.New("an earlier version of Sluice runs there, which does not list them")
	}
	list = slices.DeleteFunc(told.Refused, func(r refusedJSON) bool { return !slices.Contains(names, r.Resource) })
	return list, s.readsLog(&answer), nil
}
