package mock

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// What became of a request, as in [Stats].
const (
	accepted  = "accepted"
	throttled = "throttled"
	failed    = "failed"
)

// Entry is one line of [Options.Log]: a request that counts against a limit. It holds no key and no body.
type Entry struct {
	// Time is when the request counted. A clock that is set does not move it.
	Time time.Time `json:"time"`
	// Agent is the request's X-Agent-Id, at most 256 bytes of it.
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	// Outcome is accepted, throttled or failed, as [Stats] counts them.
	Outcome string `json:"outcome"`
}

// journal writes entries as lines of JSON. Entries that arrive together may be out of order by their times.
type journal struct {
	mu sync.Mutex
	to io.Writer // nil: nothing is written
}

func (j *journal) add(x *exchange, at store.Time, outcome string) {
	if j.to == nil {
		return
	}
	e := Entry{Time: time.UnixMicro(int64(at)).UTC(), Agent: cut(x.r.Header.Get("X-Agent-Id")), Model: cut(x.model), Outcome: outcome}
	line, err := json.Marshal(e)
	if err != nil {
		return // a time beyond the year 9999
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.to.Write(append(line, '\n')) // a full disk is no reason to refuse a request
}

// cut bounds a name that a client chose.
func cut(name string) string { return name[:min(len(name), maxName)] }
