package mock

import (
	"maps"
	"sync"
)

// Bounds of what is counted by name. What comes after is counted as "(others)".
const (
	maxAgents = 10_000
	maxModels = 1_000
	maxName   = 256
	others    = "(others)"
)

// Stats are what a server has seen.
type Stats struct {
	// Arrived are the requests that count against a limit; each is accepted, throttled or failed.
	Arrived   int64 `json:"arrived"`
	Accepted  int64 `json:"accepted"`
	Throttled int64 `json:"throttled"`
	// WorstWindow is the most requests of one key and class of models that were accepted in any rolling
	// window of the limit's length; a minute if there is no limit on requests.
	WorstWindow int64 `json:"worst_window"`
	// ByAgent are accepted requests by their X-Agent-Id. Those without are not in it.
	ByAgent map[string]int64 `json:"by_agent"`
	// Failed are those that X-Mock gave another status.
	Failed int64 `json:"failed"`
	// Free are those that count against no limit.
	Free int64 `json:"free"`
	// Aborted are accepted requests whose client went away before the end of the answer.
	Aborted int64 `json:"aborted"`
	// InFlight are accepted requests that are being answered.
	InFlight int64 `json:"in_flight"`
	// Ledger is what accepted requests have used, by model as the request names it.
	Ledger map[string]Usage `json:"ledger"`
}

// Usage is what requests have used. No token is in two of the fields.
type Usage struct {
	Requests         int64 `json:"requests"`
	InputTokens      int64 `json:"input_tokens"` // neither read from a cache nor written to one
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
}

func (u Usage) plus(v Usage) Usage {
	u.Requests += v.Requests
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	return u
}

// tally keeps the statistics.
type tally struct {
	mu sync.Mutex
	s  Stats
}

func newTally() *tally {
	t := new(tally)
	t.reset()
	return t
}

// reset begins anew. What is being answered still is.
func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.s = Stats{ByAgent: map[string]int64{}, Ledger: map[string]Usage{}, InFlight: t.s.InFlight}
}

func (t *tally) stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.s
	s.ByAgent, s.Ledger = maps.Clone(s.ByAgent), maps.Clone(s.Ledger)
	return s
}

// change counts under the lock.
func (t *tally) change(f func(s *Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.s)
}

// accept counts a request that was let in.
func (t *tally) accept(agent, model string, u Usage) {
	t.change(func(s *Stats) {
		s.Arrived++
		s.Accepted++
		s.InFlight++
		if agent != "" {
			agent = bounded(s.ByAgent, agent, maxAgents)
			s.ByAgent[agent]++
		}
		s.enter(model, u)
	})
}

// enter adds to the ledger. Requests that name no model are not in it.
func (s *Stats) enter(model string, u Usage) {
	if model != "" {
		model = bounded(s.Ledger, model, maxModels)
		s.Ledger[model] = s.Ledger[model].plus(u)
	}
}

// bounded is the name under which something is counted.
func bounded[V any](m map[string]V, name string, most int) string {
	name = cut(name)
	if _, there := m[name]; !there && len(m) >= most {
		return others
	}
	return name
}
