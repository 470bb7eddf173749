package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Check is one rule and its result.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (r *Result) check(name string, ok bool, detail string) {
	r.Checks = append(r.Checks, Check{name, ok, detail})
}

// status holds the parts of the daemon's status that the checks use.
type status struct {
	Resources []struct {
		Name     string         `json:"name"`
		Waiting  map[string]int `json:"waiting"`
		InFlight int            `json:"in_flight"`
		Sent     int64          `json:"sent"`
	} `json:"resources"`
	Agents []struct {
		Name    string     `json:"name"`
		Machine string     `json:"machine"`
		Expires *time.Time `json:"lease_expires_at"`
		Leased  bool       `json:"leased"`
	} `json:"agents"`
}

type report struct {
	Resources []struct {
		Name  string    `json:"name"`
		Since time.Time `json:"since"` // start of the report: the event log is bounded
		Total struct {
			First   int64 `json:"first_sends"`
			Retries int64 `json:"retries"`
		} `json:"total"`
	} `json:"resources"`
}

// settleWithin is how long the daemon may take until no request is in flight.
const settleWithin = 10 * time.Second

// examine compares the clients' counts with the daemon's.
func (r *Result) examine(ctx context.Context, o options, w *wire, idle, load *phase) error {
	s, err := settled(ctx, w)
	if err != nil {
		return err
	}
	granted := idle.granted.Load() + load.granted.Load()
	due := int64(idle.tickets + load.tickets)
	ended := idle.ended.Load() + load.ended.Load()
	r.check("every ticket was granted and closed", granted == due && ended == due, fmt.Sprintf("%d due, %d granted, %d closed", due, granted, ended))
	var sent, inFlight, waiting int64 = -1, -1, 0
	for _, res := range s.Resources {
		if res.Name == resource {
			sent, inFlight = res.Sent, int64(res.InFlight)
			for _, n := range res.Waiting {
				waiting += int64(n)
			}
		}
	}
	r.check("the gate has counted each once", sent == granted, fmt.Sprintf("%d granted, status says %d", granted, sent))
	var rep report
	if err := w.call(ctx, "GET", "/v1/report?since=24h", nil, &rep); err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	first, again, since := int64(-1), int64(0), time.Time{}
	for _, res := range rep.Resources {
		if res.Name == resource {
			first, again, since = res.Total.First, res.Total.Retries, res.Since
		}
	}
	least, atMost := reported(load, granted, since)
	r.check("the report has counted each once", first >= least && first <= atMost && again == 0,
		fmt.Sprintf("%d granted since it remembers, the report says %d, and %d retries", atMost, first, again))
	r.check("nothing is left over", inFlight == 0 && waiting == 0, fmt.Sprintf("%d in flight, %d waiting", inFlight, waiting))
	r.check("every heartbeat was heard", load.renewed.Load() == int64(load.beats) && idle.renewed.Load() == int64(idle.beats),
		fmt.Sprintf("%d due, %d answered", idle.beats+load.beats, idle.renewed.Load()+load.renewed.Load()))
	alive, now := 0, time.Now()
	for _, a := range s.Agents {
		if strings.HasPrefix(a.Name, load.prefix+"-") && a.Machine == machine && a.Leased && a.Expires != nil && a.Expires.After(now) {
			alive++
		}
	}
	r.check("every agent has its lease", alive == o.agents, fmt.Sprintf("%d of %d", alive, o.agents))
	second, minute := limits(o.tickets)
	worstSecond, worstMinute := most(load.went, time.Second), most(load.went, time.Minute)
	r.check("the limits were kept", worstSecond <= second && worstMinute <= minute,
		fmt.Sprintf("at most %d in a second (%d), %d in a minute (%d)", worstSecond, second, worstMinute, minute))
	m := r.Memory
	r.check("memory is flat", !m.grows(), fmt.Sprintf("%s in the second third, %s in the last", size(m.Second), size(m.Last)))
	if o.load >= judgedFrom {
		var drift []string
		for _, l := range r.Levels {
			if l.drifts() {
				drift = append(drift, fmt.Sprintf("%s from %.1f to %.1f", l.Name, l.Middle, l.End))
			}
		}
		r.check("nothing drifts", len(drift) == 0, cmp.Or(strings.Join(drift, ", "), fmt.Sprintf("%d levels", len(r.Levels))))
	}
	return nil
}

// reported returns the least and the most sends that a report since a time may count. The range allows for clocks that
// differ. A report that covers the whole load must count all grants.
func reported(load *phase, granted int64, since time.Time) (least, most int64) {
	if since.IsZero() || since.Before(load.begun) {
		return granted, granted
	}
	const doubt = 2 * time.Second
	after := func(at time.Time) int64 {
		from, _ := slices.BinarySearch(load.went, at.Sub(load.begun).Microseconds())
		return int64(len(load.went) - from)
	}
	return after(since.Add(doubt)), after(since.Add(-doubt))
}

// settled returns the status as soon as no request is in flight, or after settleWithin.
func settled(ctx context.Context, w *wire) (s status, err error) {
	until := time.Now().Add(settleWithin)
	for {
		s = status{}
		if err := w.call(ctx, "GET", "/v1/status", nil, &s); err != nil {
			return s, fmt.Errorf("the status: %w", err)
		}
		busy := false
		for _, res := range s.Resources {
			busy = busy || res.Name == resource && res.InFlight > 0
		}
		if !busy || time.Now().After(until) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
