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

// Why there should be no replica.
const (
	Paused    = "paused"    // everyone is held
	Red       = "red"       // only an emergency proceeds
	Broken    = "breaker"   // open: the quota would be gone before its reset
	Exhausted = "exhausted" // nothing is left until the reset
)

// Demand is what the state of a resource asks for at one moment, before [State.Next] makes it steady.
type Demand struct {
	Replicas int64
	// Off is why there should be none; empty if there may be.
	Off string
	// Probing tells that a pause is over and one request has to prove it: so there must be one replica, and
	// no more. Ramping tells that it has, and that the gate lets a few go at first.
	Probing bool
	Ramping bool
}

// Situation is what a decision rests on.
type Situation struct {
	Status inspect.ResourceStatus
	// Limits are the resource's, as the gate was opened with them: they say how long windows are, and
	// which limits are one caller's alone.
	Limits []sluice.Limit
	// Highest is the class that an amber light does not hold.
	Highest string
	Now     time.Time
}

// Decide tells how many replicas a resource can feed, or is worth. It is a pure function.
func Decide(s Situation, t Trigger) (Demand, error) {
	var d Demand
	limits := s.relevant(t)
	light := limits.light()
	if t.Mode == Light && t.Unit == "" && t.Model == "" {
		light = s.Status.Light // as it is shown
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
			d.Replicas = 1 // its answers will tell
		case left == 0:
			d.Off = Exhausted
		default:
			// One is fed at any pace, if slowly: the gate holds it.
			d.Replicas = max(1, whole(math.Floor(left/t.Target+1e-9)))
		}
	}
	if held {
		// Lower classes get only what the light's threshold frees as the reset comes nearer.
		d.Replicas = min(d.Replicas, 1)
	}
	return d, nil
}

// whole bounds a number of replicas.
func whole(n float64) int64 {
	if n > maxReplicas {
		return maxReplicas
	}
	return int64(max(n, 0))
}

// phase tells whether the resource, or the model that the trigger is about, is in a phase of a pause.
func (s Situation) phase(t Trigger, phase string) bool {
	return slices.ContainsFunc(s.Status.Gates, func(g inspect.PauseStatus) bool {
		return g.Phase == phase && (g.Scope == "" || t.Model != "" && g.Scope == "model="+t.Model)
	})
}

func (s Situation) waiting(class string) (n int) {
	if class != "" {
		return s.Status.Waiting[class]
	}
	for _, w := range s.Status.Waiting {
		n += w
	}
	return n
}

// meter is a limit's state and what is known of the limit.
type meter struct {
	inspect.LimitStatus
	def *sluice.Limit // nil if the configuration does not name it
}

// meters are the limits that count for a trigger, by name: more than one where each model or key has its
// own.
type meters [][]meter

// relevant picks the limits that count.
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

// private limits are one caller's: who lacks them holds up nobody else.
func (m *meter) private() bool {
	return m.def != nil && slices.ContainsFunc(m.def.Per, func(s sluice.Scope) bool {
		return s == sluice.PerAgent || s == sluice.PerUser || s == sluice.PerTool
	})
}

// isFor tells whether requests for a model are counted.
func (m *meter) isFor(model string) bool {
	if m.Scope == "" || m.def != nil && !slices.Contains(m.def.Per, sluice.PerModel) {
		return true
	}
	return slices.Contains(strings.Split(m.Scope, ","), model)
}

// all tells whether something is so for any limit: for each model of it, where each has its own.
func (g meters) all(is func(*meter) bool) bool {
	return slices.ContainsFunc(g, func(group []meter) bool {
		return !slices.ContainsFunc(group, func(m meter) bool { return !is(&m) })
	})
}

// light is the light where it binds. A flow that is used to the full shines red all the time and holds
// nobody back.
func (g meters) light() string {
	for _, c := range [][]string{{"red"}, {"red", "amber"}} {
		if g.all(func(m *meter) bool { return m.Binds && slices.Contains(c, m.Light) }) {
			return c[len(c)-1]
		}
	}
	return "green"
}

// headroom is what can be spent in a minute: of the tightest limit in the trigger's unit.
func (g meters) headroom(s Situation, t Trigger) (least float64, known bool, err error) {
	unit := g.unit(t)
	for _, group := range g {
		sum, counts := 0.0, false
		for i := range group {
			m := &group[i]
			if m.Unit != unit || m.Kind == sluice.Concurrency.String() {
				continue // places say nothing of how much goes through them
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

// unit is what the trigger's target counts.
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

// perMinute is what a limit lets through in a minute from now on: a flow its rate, a stock what is left
// of it, spread evenly until the reset. It is not ok if nobody knows.
func (m *meter) perMinute(now time.Time) (rate float64, ok bool, err error) {
	if m.Kind == sluice.Fixed.String() && m.ResetAt != nil {
		// Within the last minute it is what is left: replicas are not made for seconds.
		return float64(max(m.Remaining, 0)) / max(m.ResetAt.Sub(now).Minutes(), 1), true, nil
	}
	if m.def == nil || m.def.Window <= 0 {
		return 0, false, fmt.Errorf("the window of the limit %s is not known here: restart the gate with a configuration that names the limit, "+
			"or use the mode %s or %s", m.Name, Queue, Light)
	}
	window := m.def.Window.Minutes()
	switch {
	case m.Kind == sluice.Fixed.String(): // its reset is not known: it may be a whole window ahead
		return float64(max(m.Remaining, 0)) / max(window, 1), true, nil
	case m.Kind != sluice.Bucket.String():
		return float64(m.Limit) / window, true, nil
	case m.def.Size > 0: // what it gives back, not what it holds
		return float64(m.def.Size) / window, true, nil
	case m.def.Burst > 0:
		return 0, false, nil // an answer has stated its rate, which is not told
	}
	return float64(m.Limit) / window, true, nil
}
