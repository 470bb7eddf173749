package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sluicehq/sluice/sim/mock"
)

const (
	lookEvery   = 50 * time.Millisecond // between two reads of the provider's statistics
	statsWithin = 2 * time.Second
	maxStats    = 1 << 20
)

// phase is one run of the fleet, with its own provider.
type phase struct {
	*demo
	number   int
	provider string // its address
	parts    []*part
	broken   chan *part // parts that have ended

	began time.Time
	peak  peak

	mu     sync.Mutex
	agents []Progress
	left   int       // agents that still run
	ended  time.Time // when the last agent ended
	done   chan struct{}
}

// phase runs one phase: the provider, the gate if the phase has one, then all agents at once.
func (d *demo) phase(ctx context.Context, number int) (*Phase, error) {
	p := &phase{demo: d, number: number, broken: make(chan *part, len(d.Script.Agents)+2), left: len(d.Script.Agents), done: make(chan struct{})}
	for _, a := range d.Script.Agents {
		p.agents = append(p.agents, Progress{Agent: a})
	}
	defer p.stop()
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	finished, err := p.watch(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := p.stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("the provider does not say what it has seen: %w", err)
	}
	p.Show(p.view())
	return p.result(finished, stats), nil
}

// stop ends all parts and waits for them.
func (p *phase) stop() {
	var all sync.WaitGroup
	for _, part := range p.parts {
		all.Go(part.stop)
	}
	all.Wait()
}

// add launches a part and adds it to parts.
func (p *phase) add(name string, env []string, heard func(line []byte), args ...string) (*part, error) {
	part, err := p.launch(name, env, heard, append(append([]string{}, p.PartArgs...), args...)...)
	if err != nil {
		return nil, err
	}
	p.parts = append(p.parts, part)
	go func() {
		<-part.ended
		p.broken <- part // the channel has room for all
	}()
	return part, nil
}

// serve launches a part that listens, and returns its address.
func (p *phase) serve(ctx context.Context, name string, args ...string) (string, error) {
	ready := make(chan string, 1)
	part, err := p.add(name, nil, func(line []byte) {
		var said struct {
			URL    string   `json:"url"`
			Listen []string `json:"listen"`
		}
		if json.Unmarshal(line, &said) != nil || said.URL == "" && len(said.Listen) == 0 {
			return
		}
		if said.URL == "" {
			said.URL = said.Listen[0]
		}
		select {
		case ready <- said.URL:
		default:
		}
	}, args...)
	if err != nil {
		return "", err
	}
	return await(ctx, part, ready)
}

// start launches all parts. When it returns, the agents have begun.
func (p *phase) start(ctx context.Context) (err error) {
	script := &p.Script
	limits := script.Provider
	if len(limits) == 0 {
		limits = []string{"--requests", script.Limit.String()}
	}
	p.provider, err = p.serve(ctx, "the provider", append([]string{"provider", "anthropic", "--json", "--listen", "127.0.0.1:0",
		"--latency", script.Latency.String(), "--tail", script.Tail.String()}, limits...)...)
	if err != nil {
		return err
	}
	gate := ""
	if p.number > 0 {
		args := []string{"gate", p.provider}
		if script.Gate != "" {
			args = append(args, "--limits", script.Gate)
		}
		if script.Unstated {
			args = append(args, "--provider", "generic")
		}
		if gate, err = p.serve(ctx, "the gate", args...); err != nil {
			return err
		}
	}
	var ready []chan struct{}
	first := len(p.parts)
	for i, a := range script.Agents {
		base := p.provider
		if gate != "" {
			base = gate + "/@" + url.PathEscape(a.Name) + ":" + url.PathEscape(a.Class) + "/anthropic"
		}
		is := make(chan struct{})
		once := sync.OnceFunc(func() { close(is) })
		part, err := p.add("agent "+a.Name, []string{baseVariable + "=" + base, keyVariable + "=demo"}, func(line []byte) {
			once()
			p.hear(i, line)
		}, "agent")
		if err != nil {
			return err
		}
		if err := json.NewEncoder(part.in).Encode(a); err != nil {
			return part.gone()
		}
		ready = append(ready, is)
	}
	for i, is := range ready {
		if _, err := await(ctx, p.parts[first+i], is); err != nil {
			return err
		}
	}
	return p.begin(ctx, p.parts[first:])
}

// begin starts the agents.
func (p *phase) begin(ctx context.Context, agents []*part) error {
	if _, err := p.look(ctx); err != nil { // the first sample for the peak
		return fmt.Errorf("the provider does not answer: %w", err)
	}
	p.began = time.Now()
	for _, a := range agents {
		if _, err := io.WriteString(a.in, "go\n"); err != nil {
			return a.gone()
		}
	}
	return nil
}

// hear handles a line of agent i.
func (p *phase) hear(i int, line []byte) {
	var s State
	if json.Unmarshal(line, &s) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agents[i].Ended {
		return
	}
	p.agents[i].State = s
	if s.Ended {
		if p.left--; p.left == 0 {
			p.ended = time.Now()
			close(p.done)
		}
	}
}

// watch waits until all agents are done. It returns false if that takes too long.
func (p *phase) watch(ctx context.Context) (finished bool, err error) {
	enough := time.NewTimer(p.Script.Patience)
	defer enough.Stop()
	now := time.NewTicker(lookEvery)
	defer now.Stop()
	for {
		select {
		case <-p.done:
			return true, p.failed()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-enough.C:
			return false, nil
		case part := <-p.broken:
			if !p.through(part) {
				return false, part.gone()
			}
			if err := p.failed(); err != nil { // the other agents cannot do its calls
				return false, err
			}
		case <-now.C:
			_, _ = p.look(ctx) // a missed sample cannot raise the peak
			p.Show(p.view())
		}
	}
}

// through reports whether a part is an agent that has reported its end.
func (p *phase) through(gone *part) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.agents {
		if gone.name == "agent "+a.Name {
			return a.Ended
		}
	}
	return false
}

// failed returns the error of an agent that ended before its work was done.
func (p *phase) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.agents {
		if a.Error != "" {
			return errors.New(a.Error)
		}
	}
	return nil
}

func (p *phase) view() View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return View{Phase: p.number, Elapsed: p.elapsed(), Agents: append([]Progress{}, p.agents...)}
}

// elapsed returns how long the phase has taken so far, or took in all. The caller holds the lock.
func (p *phase) elapsed() time.Duration {
	if !p.ended.IsZero() {
		return p.ended.Sub(p.began)
	}
	return time.Since(p.began)
}

// look reads the provider's statistics, and adds a sample to the peak.
func (p *phase) look(ctx context.Context) (*mock.Stats, error) {
	before := time.Now()
	stats, err := p.stats(ctx)
	if err == nil {
		p.peak.add(sample{before, time.Now(), stats.Arrived})
	}
	return stats, err
}

func (p *phase) stats(ctx context.Context) (*mock.Stats, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.provider+"/_mock/stats", nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	stats := new(mock.Stats)
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxStats)).Decode(stats); err != nil {
		return nil, err
	}
	return stats, nil
}
