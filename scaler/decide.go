package scaler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// Reasons for zero replicas.
const (
	Paused    = "paused"    // every request is held
	Red       = "red"       // only emergencies proceed
	Broken    = "breaker"   // open: the quota would be used up before its reset
	Exhausted = "exhausted" // nothing is left until the reset
)

// Demand is the number of replicas that the state of a resource asks for at one moment, before [State.Next] smooths it.
type Demand struct {
	Replicas int64
	// Off is the reason for zero replicas; empty if replicas may run.
	Off string
	// Probing reports that a pause has ended and one request has to prove it, so there must be exactly one replica.
	// Ramping reports that it has, and that the gate lets only a few requests go at first.
	Probing bool
	Ramping bool
}

// Situation is the input of a decision.
type Situation struct {
	Status inspect.ResourceStatus
	// Limits are the limits that the gate was opened with. They give the length of windows, and show which limits
	// belong to one caller alone.
	Limits []sluice.Limit
	// Highest is the class that an amber light does not hold.
	Highest string
	Now     time.Time
}

// Decide returns how many replicas a resource can feed, or how many its queue needs. It is a pure function.
func Decide(s Situation, t Trigger) (Demand, error) {
	var d Demand
	limits := s.relevant(t)
	light := limits.light()
	if t.Mode == Light && t.Unit == "" && t.Model == "" {
		light = s.Status.Light // the light that status shows
	}
	switch {
	case s.phase(t, "paused"):
		d.Off = Paused
	case light == "red":
		d.Off = Red
	case limits.all(func(l *meter) bool { return l.Breaker == "open" }):
		d.Off = Broken
	}
	if d.Off != "" {
		return d, nil
	}
	d.Probing, d.Ramping = s.phase(t, "probing"), s.phase(t, "ramping")
	held := light == "amber" && t.Class != "" && t.Class != s.Highest
	switch t.Mode {
	case Light:
		d.Replicas = int64(t.Target)
		if light == "amber" && (t.Class == "" || held) {
			d.Replicas = (d.Replicas + 1) / 2
		}
		return d, nil
	case Queue:
		d.Replicas = whole(math.Ceil(float64(s.waiting(t.Class)) / t.Target))
	default:
		left, known, err := limits.headroom(s, t)
		if err != nil {
			return d, err
		}
		switch {
		case !known:
			d.Replicas = 1 // its responses will state the limits
		case left == 0:
			d.Off = Exhausted
		default:
			// One replica runs at any rate, if slowly: the gate holds it.
			d.Replicas = max(1, whole(math.Floor(left/t.Target+1e-9)))
		}
	}
	if held {
		// Lower classes get only what the light's threshold frees as the reset comes nearer.
		d.Replicas = min(d.Replicas, 1)
	}
	return d, nil
}

// whole converts a number of replicas to a whole number, at most maxReplicas.
func whole(n float64) int64 {
	if n > maxReplicas {
		return maxReplicas
	}
	return int64(max(n, 0))
}

// phase reports whether the resource, or the trigger's model, is in a phase of a pause.
func (s Situation) phase(t Trigger, phase string) bool {
	return slices.ContainsFunc(s.Status.Gates, func(g inspect.PauseStatus) bool {
		return g.Phase == phase && (g.Scope == "" || t.Model != "" && g.Scope == "model="+t.Model)
	})
}

func (s Situation) waiting(class string) int {
	if class != "" {
		return s.Status.Waiting[class]
	}
	return s.Status.AllWaiting()
}

// meter is the state of a limit with its definition.
type meter struct {
	inspect.LimitStatus
	def *sluice.Limit // nil if the configuration does not name it
}

// meters holds the limits that count for a trigger, grouped by name: a group has several if each model or key has its
// own.
type meters [][]meter

// relevant returns the limits that count for a trigger.
func (s Situation) relevant(t Trigger) (groups meters) {
	index := map[string]int{}
	for _, l := range s.Status.Limits {
		m := meter{LimitStatus: l}
		if i := slices.IndexFunc(s.Limits, func(d sluice.Limit) bool { return d.Name == l.Name }); i >= 0 {
			m.def = &s.Limits[i]
		}
		if l.Limit == 0 || m.private() || t.Unit != "" && l.Unit != t.Unit || t.Model != "" && !m.isFor(t.Model) {
			continue
		}
		i, ok := index[l.Name]
		if !ok {
			i = len(groups)
			index[l.Name], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// private reports whether a limit belongs to one caller alone: it does not hold up other callers.
func (m *meter) private() bool {
	return m.def != nil && slices.ContainsFunc(m.def.Per, func(s sluice.Scope) bool {
		return s == sluice.PerAgent || s == sluice.PerUser || s == sluice.PerTool
	})
}

// isFor reports whether the limit counts requests for a model.
func (m *meter) isFor(model string) bool {
	if m.Scope == "" || m.def != nil && !slices.Contains(m.def.Per, sluice.PerModel) {
		return true
	}
	return slices.Contains(strings.Split(m.Scope, ","), model)
}

// all reports whether is holds for some limit: for every model of it, if each has its own.
func (g meters) all(is func(*meter) bool) bool {
	return slices.ContainsFunc(g, func(group []meter) bool {
		return !slices.ContainsFunc(group, func(m meter) bool { return !is(&m) })
	})
}

// light returns the light of the limits where it binds. A fully used flow is red all the time and holds no request.
func (g meters) light() string {
	for _, c := range [][]string{{"red"}, {"red", "amber"}} {
		if g.all(func(m *meter) bool { return m.Binds && slices.Contains(c, m.Light) }) {
			return c[len(c)-1]
		}
	}
	return "green"
}

// headroom returns how much can be spent per minute, by the tightest limit in the trigger's unit.
func (g meters) headroom(s Situation, t Trigger) (least float64, known bool, err error) {
	unit := g.unit(t)
	for _, group := range g {
		sum, counts := 0.0, false
		for i := range group {
			m := &group[i]
			if m.Unit != unit || m.Kind == sluice.Concurrency.String() {
				continue // concurrency says nothing about throughput
			}
			rate, ok, err := m.perMinute(s.Now)
			if err != nil {
				return 0, false, fmt.Errorf("resource %s: %w", s.Status.Name, err)
			}
			sum, counts = sum+rate, counts || ok
		}
		if counts && (!known || sum < least) {
			least, known = sum, true
		}
	}
	return least, known, nil
}

// unit returns the unit of the trigger's target.
func (g meters) unit(t Trigger) string {
	if t.Unit != "" {
		return t.Unit
	}
	first := ""
	for _, group := range g {
		switch m := &group[0]; {
		case m.Kind == sluice.Concurrency.String():
		case m.Unit == sluice.Requests:
			return sluice.Requests
		case first == "":
			first = m.Unit
		}
	}
	return first
}

// perMinute returns how much a limit lets through per minute from now on: for a flow its rate, for a stock what is
// left, spread evenly until the reset. ok is false if it is unknown.
func (m *meter) perMinute(now time.Time) (rate float64, ok bool, err error) {
	if m.Kind == sluice.Fixed.String() && m.ResetAt != nil {
		// In the last minute all that is left counts: replicas are not started for seconds.
		return float64(max(m.Remaining, 0)) / max(m.ResetAt.Sub(now).Minutes(), 1), true, nil
	}
	if m.def == nil || m.def.Window <= 0 {
		return 0, false, fmt.Errorf("the window of the limit %s is not known here: restart the gate with a configuration that names the limit, "+
			"or use the mode %s or %s", m.Name, Queue, Light)
	}
	window := m.def.Window.Minutes()
	switch {
	case m.Kind == sluice.Fixed.String(): // the reset is unknown: it may be a whole window ahead
		return float64(max(m.Remaining, 0)) / max(window, 1), true, nil
	case m.Kind != sluice.Bucket.String():
		return float64(m.Limit) / window, true, nil
	case m.def.Size > 0: // its refill rate, not its capacity
		return float64(m.def.Size) / window, true, nil
	case m.def.Burst > 0:
		return 0, false, nil // a response has stated its rate, which is not shown
	}
	return float64(m.Limit) / window, true, nil
}
