package demo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Bounds on a fleet that runs live.
const (
	MaxAgents = 32 // each is a process
	MaxBest   = 15 * time.Minute
)

// FromScenario converts a scenario into a script. Its error says which part of the scenario cannot run live. The script
// simplifies: sizes do not vary, agents retry calls until they are answered, and no other users share the key.
func FromScenario(sc *sim.Scenario) (Script, error) {
	p := Script{About: "", Latency: sc.Service.Median + time.Duration(sc.Body.Mean())*time.Microsecond}
	p.Tail = time.Duration(sc.Service.Mean())*time.Microsecond - sc.Service.Median
	if len(sc.Fleet) > MaxAgents {
		return p, fmt.Errorf("%d agents are more than the %d processes that a demo starts", len(sc.Fleet), MaxAgents)
	}
	perModel, err := p.limits(sc)
	if err != nil {
		return p, err
	}
	for i := range sc.Fleet {
		a := &sc.Fleet[i]
		one := Agent{
			Name: a.Name, Class: sim.Classes[a.Class].Name, Calls: a.Jobs * a.Calls, Workers: a.Workers, PerJob: a.Calls, Start: a.Start, Every: a.Every, Tokens: a.Request.Input,
		}
		if perModel {
			one.Model = a.Request.Model
		}
		p.Agents = append(p.Agents, one)
	}
	if p.Best = sim.Ideal(sc); p.Best > MaxBest {
		return p, fmt.Errorf("the work takes %v at best, and a demo runs it twice in real time; the most is %v", p.Best.Round(time.Second), MaxBest)
	}
	p.Patience = 4*p.Best + time.Minute
	return p, nil
}

// limits converts the provider's limits into flags of the mock.
func (p *Script) limits(sc *sim.Scenario) (perModel bool, err error) {
	flags := map[string]string{sim.Requests: "--requests", sim.InputTokens: "--input-tokens"}
	algorithm, needs := "", "" // needs names a limit that only a gate that reads Anthropic's calls can count
	var told []string
	for _, l := range sc.Limits {
		if l.Kind == store.Concurrency {
			p.Provider = append(p.Provider, "--concurrency", strconv.FormatInt(l.Size, 10))
			p.name(strconv.FormatInt(l.Size, 10) + " at once")
			told = append(told, fmt.Sprintf("{name: %q, concurrency: %d}", l.Name, l.Size))
			continue
		}
		flag := flags[l.Unit]
		switch {
		case flag == "":
			return false, fmt.Errorf("limit %s: the mock provider has one limit on requests, one on input_tokens and one on concurrency, this is on %s or the second of its kind", l.Name, l.Unit)
		case l.Hidden || l.Plan || l.Phase != 0 && l.Phase != l.Window:
			return false, fmt.Errorf("limit %s: the mock provider has no limit with hidden, plan or first_reset", l.Name)
		case algorithm != "" && algorithm != l.Kind.String():
			return false, fmt.Errorf("limit %s: the mock provider enforces all its limits as %s", l.Name, algorithm)
		case l.Kind == store.Bucket && l.Burst != l.Size && l.Unit != sim.Requests:
			return false, fmt.Errorf("limit %s: the mock provider has a burst of its own only on requests", l.Name)
		}
		algorithm = l.Kind.String()
		delete(flags, l.Unit) // the mock has one limit for each unit
		size := sim.Rate{N: l.Size, Window: l.Window}.String()
		p.Provider = append(p.Provider, flag, size)
		if l.Kind == store.Bucket && l.Burst != l.Size {
			p.Provider = append(p.Provider, "--burst", strconv.FormatInt(l.Burst, 10))
		}
		told = append(told, toldLimit(&l, size))
		if p.name(size); l.Unit != sim.Requests {
			p.About += " input tokens"
		}
		perModel = perModel || l.PerModel
		p.Unstated = p.Unstated || l.Window != time.Minute
		if needs == "" && (l.PerModel || l.Unit != sim.Requests) {
			needs = l.Name
		}
	}
	if p.Unstated && needs != "" {
		return false, fmt.Errorf("limit %s: with limits per model or on tokens, all windows are one minute, as with Anthropic", needs)
	}
	if algorithm != "" {
		p.Provider = append(p.Provider, "--algorithm", algorithm)
	}
	p.Gate = "[" + strings.Join(told, ", ") + "]"
	return perModel, nil
}

// toldLimit formats a limit for the gate's configuration.
func toldLimit(l *sim.Limit, size string) string {
	s := fmt.Sprintf("{name: %q, size: %s, unit: %s", l.Name, size, l.Unit)
	switch l.Kind {
	case store.Bucket:
		s += fmt.Sprintf(", burst: %d", l.Burst)
	case store.Fixed:
		s += ", kind: fixed"
	}
	if l.PerModel {
		s += ", per: [model]"
	}
	return s + "}"
}

func (p *Script) name(limit string) {
	if p.About != "" {
		p.About += ", "
	}
	p.About += limit
}
