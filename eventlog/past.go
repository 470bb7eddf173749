package eventlog

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// maxPastHosts bounds the hosts in the result of Past.
const maxPastHosts = 256

// Past counts the connections of commands under sluice run on this machine that went past the gate since a moment. It
// leaves out events of other stores than the given ones, as [IsOf] says.
func Past(dir string, since time.Time, stores ...string) (past inspect.Past, err error) {
	past.Of = map[string]map[string]int64{}
	hosts := 0
	err = ReadKinds(dir, since, []string{inspect.EventPastGate}, func(e inspect.Event) bool {
		if !IsOf(&e, stores) {
			return true
		}
		past.Watched = true
		if e.Host == "" || e.Count <= 0 {
			return true
		}
		to := past.Of[e.Resource]
		if _, known := to[e.Host]; !known {
			if hosts++; hosts > maxPastHosts {
				return true
			}
		}
		if to == nil {
			to = map[string]int64{}
			past.Of[e.Resource] = to
		}
		to[e.Host] += e.Count
		return true
	})
	return past, err
}
