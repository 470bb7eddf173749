package mock

import (
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Outcomes of a request, as in [Stats].
const (
	accepted  = "accepted"
	throttled = "throttled"
	failed    = "failed"
)

// Entry is one line of [Options.Log]: a request that counts against a limit. It holds no key and no body.
type Entry struct {
	// Time is when the request arrived, by a clock that does not jump when the system clock is set.
	Time time.Time `json:"time"`
	// Agent is the request's X-Agent-Id, cut to 256 bytes.
	Agent string `json:"agent,omitempty"`
	Model string `json:"model,omitempty"`
	// Retry is set if the client's SDK states that it sends the request again.
	Retry bool `json:"retry,omitempty"`
	// Outcome is accepted, throttled or failed, as [Stats] counts them.
	Outcome string `json:"outcome"`
}

// journal writes entries as lines of JSON. Concurrent entries may be out of order.
type journal struct {
	mu sync.Mutex
	to io.Writer // nil: nothing is written
}

func (j *journal) add(x *exchange, at store.Time, outcome string) {
	if j.to == nil {
		return
	}
	again, _ := strconv.Atoi(x.r.Header.Get("X-Stainless-Retry-Count")) // 0 without one
	e := Entry{Time: time.UnixMicro(int64(at)).UTC(), Agent: cut(x.r.Header.Get("X-Agent-Id")), Model: cut(x.model), Retry: again > 0, Outcome: outcome}
	line, err := json.Marshal(e)
	if err != nil {
		return // the time is after the year 9999
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = j.to.Write(append(line, '\n')) // a full disk must not fail a request
}

// cut shortens a name from a client to maxName bytes.
func cut(name string) string { return name[:min(len(name), maxName)] }
