package sluice

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// The defaults of a resource.
const (
	defaultMaxWaiting = 10_000
	defaultTTL        = 10 * time.Minute
	defaultRenew      = 2 * time.Minute
	defaultGreen      = 20 // percent
	defaultRed        = 5
	defaultWithin     = 2 * time.Minute
	defaultSamples    = 10
)

// settings is a configuration, checked and ready for use on every request.
type settings struct {
	order   store.Order
	classes []store.Class
	agents  map[string]*known
	unknown *known // for agents that are not named
	tools   map[string]int64

	noShares, noPacing, noCascade bool
	lease                         time.Duration // negative: no agent counts as live
	renew                         time.Duration
	slots                         store.Slots

	member    string // name of this process
	readOnly  bool
	restate   bool // replaces earlier specs from the same store
	passing   bool // has no share while the store cannot be reached
	onFailure store.OnFailure
	storeName string // for messages
	provider  func(resource string) string
}

// known is what the configuration says about an agent.
type known struct {
	class    uint8
	user     string
	given    bool // the class is configured, not the default
	waitsFor []string
}

// member returns the name of this process, for messages about members that differ.
var member = sync.OnceValue(func() string {
	name := fmt.Sprintf("process %d", os.Getpid())
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return name
})

func newSettings(c Config) (*settings, error) {
	p := &settings{
		provider: c.Provider,
		order:    c.Order, tools: maps.Clone(c.Tools), agents: map[string]*known{},
		noShares: c.NoShares, noPacing: c.NoPacing, noCascade: c.NoCascade, member: member(), readOnly: c.ReadOnly,
		passing: c.OneShot || c.ReadOnly, onFailure: c.OnStoreFailure, storeName: "the store",
	}
	if strings.HasPrefix(c.Store, "redis") {
		p.storeName = "Redis"
	}
	if c.OnStoreFailure > store.FailOpen {
		return nil, invalid("on store failure: %d is not a known value", c.OnStoreFailure)
	}
	if err := p.setLeases(c); err != nil {
		return nil, err
	}
	if p.tools == nil {
		p.tools = policy.DefaultTools()
	}
	for tool, cost := range p.tools {
		if cost < 0 || cost > store.MaxAmount {
			return nil, invalid("tool %q: a cost of %d is out of range", tool, cost)
		}
	}
	if len(c.Classes) == 0 {
		c.Classes = []Class{{P0, 40}, {P1, 35}, {P2, 25}}
	}
	for i, cl := range c.Classes {
		if cl.Name == "" {
			return nil, invalid("class %d has no name", i)
		}
		if _, twice := p.classIndex(cl.Name); twice {
			return nil, invalid("class %q is there twice", cl.Name)
		}
		if cl.Share < 1 || cl.Share > 1000 {
			return nil, invalid("class %q: a share of %d is out of range: 1 to 1000", cl.Name, cl.Share)
		}
		p.classes = append(p.classes, store.Class{Name: cl.Name, Weight: cl.Share})
	}
	p.unknown = &known{class: uint8(len(p.classes) - 1)}
	for name, a := range c.Agents {
		k := &known{class: p.unknown.class, user: a.User, waitsFor: slices.Clone(a.WaitsFor)}
		if slices.Contains(a.WaitsFor, name) || len(a.WaitsFor) > store.MaxWaits {
			return nil, invalid("agent %.80q: it can wait for up to %d others, and not for itself", name, store.MaxWaits)
		}
		for _, other := range a.WaitsFor {
			if other == "" || len(other) > store.MaxName {
				return nil, invalid("agent %.80q: it cannot wait for %.80q: names have 1 to %d bytes", name, other, store.MaxName)
			}
		}
		if a.Class != "" {
			class, ok := p.classIndex(a.Class)
			if !ok {
				return nil, invalid("agent %q: unknown class %q", name, a.Class)
			}
			k.class, k.given = class, true
		}
		p.agents[name] = k
	}
	if k, ok := p.agents["*"]; ok {
		p.unknown = k
		delete(p.agents, "*")
	}
	return p, nil
}

// setLeases sets how long agents stay live and how many agents a user may run.
func (p *settings) setLeases(c Config) error {
	p.renew, p.lease = cmp.Or(c.Leases.Renew, defaultRenew), cmp.Or(c.Leases.Expire, store.DefaultLease)
	if c.Slots.Max > 0 {
		p.slots = store.Slots{Max: c.Slots.Max, TTL: cmp.Or(c.Slots.TTL, store.DefaultLease)}
	}
	switch {
	case p.lease < time.Second || p.lease > store.MaxTTL:
		return invalid("leases: an expiry of %v is out of range: 1s to %v", c.Leases.Expire, store.MaxTTL)
	case p.renew <= 0 || p.renew >= p.lease:
		return invalid("leases: renewing every %v keeps no lease of %v alive", p.renew, p.lease)
	case c.Slots.Max < 0 || c.Slots.Max > store.MaxSlots:
		return invalid("slots: %d is out of range: 0 to %d", c.Slots.Max, store.MaxSlots)
	case c.Slots.Max > 0 && (p.slots.TTL <= p.renew || p.slots.TTL > store.MaxTTL):
		return invalid("slots: a time to live of %v must be more than the %v between heartbeats, and at most %v",
			p.slots.TTL, p.renew, store.MaxTTL)
	case c.Slots.Max > 0 && c.Leases.Off:
		return invalid("slots: they need leases, which are off")
	}
	if c.Leases.Off {
		p.lease = -1
	}
	return nil
}

func (p *settings) classIndex(name string) (uint8, bool) {
	for i := range p.classes {
		if p.classes[i].Name == name {
			return uint8(i), true
		}
	}
	return 0, false
}

// className returns the name of a class. A pool may have more classes, from another member.
func (p *settings) classesHint() string {
	names := make([]string, len(p.classes))
	for i := range p.classes {
		names[i] = p.classes[i].Name
	}
	return "classes are " + strings.Join(names, ", ")
}

// shorterLease returns the line of a configuration with leases of half the length; empty if they are too short for that.
func (p *settings) shorterLease() string {
	expire := (p.lease / 2).Round(time.Second)
	if expire < 3*time.Second {
		return ""
	}
	return fmt.Sprintf("leases: {renew: %v, expire: %v}", min(p.renew, (expire/3).Round(time.Second)), expire)
}

// waitsBesides returns the agents that the last agent of a circle is configured to wait for, without the first.
func (p *settings) waitsBesides(circle []string) []string {
	if len(circle) == 0 {
		return nil
	}
	k := p.agents[circle[len(circle)-1]]
	if k == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(k.waitsFor), func(name string) bool { return name == circle[0] })
}

func (p *settings) className(i int) string {
	if i >= len(p.classes) {
		return fmt.Sprintf("class %d", i)
	}
	return p.classes[i].Name
}

func (p *settings) agent(name string) *known {
	if len(p.agents) > 0 {
		if k, ok := p.agents[name]; ok {
			return k
		}
	}
	return p.unknown
}

// toolCost returns the cost of a tool in the unit work.
func (p *settings) toolCost(tool string) int64 {
	if tool != "" {
		if c, ok := p.tools[tool]; ok {
			return c
		}
	}
	return 1
}

// spec converts a resource's configuration to a store.Spec.
func (p *settings) spec(name string, r Resource) (store.Spec, error) {
	s := store.Spec{
		Name: name, Member: p.member, ReadOnly: p.readOnly, Restate: p.restate, OneShot: p.passing, OnFailure: p.onFailure, Classes: p.classes, Order: p.order, MaxWaiting: r.MaxWaiting, MaxMeters: r.MaxMeters,
		Throttle: store.Backoff(r.Backoff),
		Overload: store.Backoff{Start: 2 * time.Second, Factor: 2, Cap: time.Minute},
	}
	if s.MaxWaiting == 0 {
		s.MaxWaiting = defaultMaxWaiting
	}
	if s.Throttle.Start == 0 {
		s.Throttle.Start = time.Minute
	}
	if s.Throttle.Factor == 0 {
		s.Throttle.Factor = 2
	}
	if s.Throttle.Cap == 0 {
		s.Throttle.Cap = max(15*time.Minute, s.Throttle.Start)
	}
	if r.Use < 0 || r.Use > 100 {
		return s, fmt.Errorf("use: %d%% must be 1 to 100", r.Use)
	}
	if err := p.setPolicy(&s, r); err != nil {
		return s, err
	}
	for _, l := range r.Limits {
		sl, err := limitSpec(l, r)
		if err != nil {
			return s, fmt.Errorf("limit %q: %w", l.Name, err)
		}
		if r.SplitKeys && !ours(&sl) {
			sl.Per |= PerKey
		}
		s.Limits = append(s.Limits, sl)
	}
	return s, nil
}

// setPolicy sets what decides how much a request leaves to others.
func (p *settings) setPolicy(s *store.Spec, r Resource) error {
	// Shares apply only to the fair order. In strict order the highest class comes before them, and in FIFO order
	// classes do not matter.
	s.Shares = !p.noShares && p.order == store.Fair
	s.Pace = !p.noPacing && p.order != store.FIFO
	s.Lease = p.lease
	green := cmp.Or(r.Light.Green, defaultGreen)
	red := cmp.Or(r.Light.Red, min(defaultRed, green/2))
	switch {
	case green < 1 || green > 99 || red < 0 || red >= green:
		return fmt.Errorf("light: green at %d%% and red at %d%% must be 1 to 99, red below green", green, red)
	case r.Reserve < 0 || r.Reserve > 99:
		return fmt.Errorf("reserve: %d%% must be 0 to 99", r.Reserve)
	case r.Breaker.Within < 0 || r.Breaker.Samples < 0:
		return errors.New("breaker: within and samples must not be negative")
	}
	if !r.Light.Off {
		s.Light = store.Light{Green: percent(green), Red: percent(red), Static: r.Light.Static, All: r.Light.All}
	}
	if !r.Breaker.Off {
		s.Breaker = store.Breaker{
			Within: cmp.Or(r.Breaker.Within, defaultWithin), Samples: cmp.Or(r.Breaker.Samples, defaultSamples), Open: r.Breaker.Open,
		}
	}
	s.Reserve = percent(r.Reserve)
	return nil
}

// percent converts a percentage to the store's thousandths.
func percent(n int) int64 { return int64(n) * store.Whole / 100 }

func limitSpec(l Limit, r Resource) (store.Limit, error) {
	s := store.Limit{
		Name: l.Name, Kind: l.Kind, Unit: l.Unit, Size: l.Size, Burst: l.Burst, Window: l.Window,
		Guard: r.Guard, Slack: r.ArrivalSlack, SizeIsDefault: l.SizeIsDefault,
	}
	if s.Unit == "" {
		s.Unit = Requests
	}
	for _, scope := range l.Per {
		if scope == 0 || scope&(scope-1) != 0 || scope > PerKey {
			return s, fmt.Errorf("scope %d is not known", scope)
		}
		s.Per |= scope
	}
	if l.Burst != 0 && l.Kind != Bucket {
		return s, fmt.Errorf("burst %d: only a bucket has one", l.Burst)
	}
	if !l.Reset.IsZero() && l.Kind != Fixed {
		return s, errors.New("reset: only a fixed window has one")
	}
	if !l.Reset.IsZero() {
		s.Reset = store.Time(l.Reset.UnixMicro())
		if s.Reset == 0 {
			s.Reset = store.Time(l.Window.Microseconds()) // to the store, 0 means none; the next reset will do as well
		}
	}
	if s.Kind == Bucket && s.Burst == 0 {
		s.Burst = s.Size
	}
	s.Plan, s.Late = l.Plan, l.Plan || s.Unit == OutputTokens
	s.Estimated = l.Estimated || l.Plan || s.Unit == "usd" || strings.HasSuffix(s.Unit, "tokens")
	if ours(&s) {
		s.Guard = store.GuardOff // we count ourselves, so nothing arrives late
		return s, nil
	}
	s.Size, s.Burst = percentOf(s.Size, int64(r.Use)), percentOf(s.Burst, int64(r.Use))
	return s, nil
}

// ours reports whether a limit is our own: the provider does not enforce it.
func ours(l *store.Limit) bool { return l.Per&^store.Shared != 0 || l.Unit == Work }

// percentOf returns use percent of an amount, at least 1 if the amount is positive. A use of 0 means all of it.
func percentOf(amount, use int64) int64 {
	if use == 0 || amount <= 0 {
		return amount
	}
	return max(amount/100*use+amount%100*use/100, 1)
}

// AgentAbove reports whether the configuration names an agent and puts it into a higher class than the given one. Class
// 0 is the highest.
func (g inside) AgentAbove(agent string, class int) bool {
	k, named := g.settings.agents[agent]
	return named && int(k.class) < class
}

// Highest reports whether a request of an agent is of the highest class. An empty class is the agent's own.
func (g inside) Highest(agent, class string) bool {
	is := g.settings.agent(agent).class
	if class != "" {
		var ok bool
		if is, ok = g.settings.classIndex(class); !ok {
			return false
		}
	}
	return is == 0
}

// UserAbove reports whether the configuration names an agent of the user in a higher class than the given one.
func (g inside) UserAbove(user string, class int) bool {
	if user == "" {
		return false
	}
	for _, k := range g.settings.agents {
		if k.user == user && int(k.class) < class {
			return true
		}
	}
	return false
}
