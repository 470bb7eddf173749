package mock

import (
	"maps"
	"sync"
)

// Bounds on the names that are counted. Further names count as "(others)".
const (
	maxAgents = 10_000
	maxModels = 1_000
	maxName   = 256
	others    = "(others)"
)

// Stats counts the requests that a server has seen.
type Stats struct {
	// Arrived counts the requests that count against a limit. Each is accepted, throttled or failed.
	Arrived   int64 `json:"arrived"`
	Accepted  int64 `json:"accepted"`
	Throttled int64 `json:"throttled"`
	// WorstWindow is the most requests of one key and class of models that were accepted in any rolling window of
	// the limit's length. The length is a minute if there is no limit on requests.
	WorstWindow int64 `json:"worst_window"`
	// ByAgent counts accepted requests by their X-Agent-Id. Requests without one are not included.
	ByAgent map[string]int64 `json:"by_agent"`
	// Failed counts the requests that got a status other than 429 from X-Mock.
	Failed int64 `json:"failed"`
	// Free counts the requests that no limit applies to.
	Free int64 `json:"free"`
	// Aborted counts accepted requests whose client disconnected before the end of the response.
	Aborted int64 `json:"aborted"`
	// InFlight counts accepted requests that are being answered.
	InFlight int64 `json:"in_flight"`
	// Ledger is the usage of accepted requests, by the model that the request names.
	Ledger map[string]Usage `json:"ledger"`
}

// Usage counts requests and tokens. Each token counts in one field only.
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

// reset clears the statistics, except InFlight.
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

// change updates the statistics under the lock.
func (t *tally) change(f func(s *Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.s)
}

// accept counts an accepted request.
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

// enter adds usage to the ledger. It ignores requests without a model.
func (s *Stats) enter(model string, u Usage) {
	if model != "" {
		model = bounded(s.Ledger, model, maxModels)
		s.Ledger[model] = s.Ledger[model].plus(u)
	}
}

// bounded returns the name to count under: others if the map is full and does not have the name.
func bounded[V any](m map[string]V, name string, most int) string {
	name = cut(name)
	if _, there := m[name]; !there && len(m) >= most {
		return others
	}
	return name
}
