//go:build slow && linux

package hosts

import (
	"context"
	"net/http"
	"os"
	"slices"
	"time"
)

// toldWithin is the promised time on an idle machine. It is checked if SLUICE_STRICT is set.
const toldWithin = 2 * time.Second

// cascade is how long a chain of agents on three hosts took to learn of a pause and of its end.
type cascade struct {
	when       string
	held, free time.Duration
}

// cascade makes a chain of three agents on three hosts, and pauses the resource that the last one uses. It measures
// when the first agent is told to start no new work, and when it may again.
func (f *fleet) cascade(when string) {
	f.Helper()
	chain := []string{"editor", "writer", "researcher"}
	var told struct {
		StartNewWork bool     `json:"start_new_work"`
		Chain        []string `json:"chain"`
	}
	beat := func(i int) bool {
		waits := ""
		if i+1 < len(chain) {
			waits = `"` + chain[i+1] + `"`
		}
		told.StartNewWork, told.Chain = false, nil
		status, err := f.call(f.hosts[i], &told, http.MethodPut, "/v1/agents/"+chain[i], `{"class":"p1","machine":"`+f.hosts[i].name+`","waits_for":[`+waits+`]}`)
		return err == nil && status == http.StatusOK
	}
	f.until("all agents of the chain are free", func() bool {
		for i := range chain {
			if !beat(i) || !told.StartNewWork {
				return false
			}
		}
		return true
	})
	if out, code := f.command(f.hosts[1], sluiceBinary, "pause", "search", "--for", "5m", "--reason", "cascade"); code != 0 {
		f.Fatalf("sluice pause exits with %d: %s", code, out)
	}
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	sent := make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(sent)
		// Requests about the mock itself count against no limit of the provider.
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+gatePort+"/@researcher:p1/search/_mock/stats", http.NoBody)
		if err != nil {
			return
		}
		if resp, err := f.hosts[2].client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	c := cascade{when: when}
	f.until("the agents upstream are told to start no new work", func() bool {
		return beat(1) && !told.StartNewWork && beat(0) && !told.StartNewWork
	})
	c.held = time.Since(begin).Round(time.Millisecond)
	if !slices.Equal(told.Chain, chain) {
		f.Errorf("the chain is %q, want %q", told.Chain, chain)
	}
	if out, code := f.command(f.hosts[1], sluiceBinary, "resume", "search"); code != 0 {
		f.Fatalf("sluice resume exits with %d: %s", code, out)
	}
	begin = time.Now()
	f.until("the agents upstream may start new work", func() bool { return beat(0) && told.StartNewWork })
	c.free = time.Since(begin).Round(time.Millisecond)
	cancel()
	<-sent
	f.cascades = append(f.cascades, c)
	for _, took := range []time.Duration{c.held, c.free} {
		if took > toldWithin && os.Getenv("SLUICE_STRICT") != "" {
			f.Errorf("%s: a chain across hosts took %v, more than %v", when, took, toldWithin)
		}
	}
}
