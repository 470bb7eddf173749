//go:build linux || darwin

package agents_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// burst is a fleet of scripts, each `sluice acquire api && curl ...`.
type burst struct {
	calls, atOnce int
	size          int64
	window, slack time.Duration
}

// shot is one script's request.
type shot struct {
	granted time.Time // as the store has recorded
	ended   time.Time // the command, whose caller can send from then on
	arrived time.Time // as the provider has recorded
}

// arrivals receives the mock's log: when which agent's request arrived.
type arrivals struct {
	mu      sync.Mutex
	at      map[string]time.Time
	refused int
}

func (a *arrivals) Write(line []byte) (int, error) {
	var e mock.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[e.Agent] = e.Time
	if e.Outcome == "throttled" {
		a.refused++
	}
	return len(line), nil
}

// play runs all scripts and returns their requests in the order of their arrival, and how many were refused.
func (b *burst) play(t *testing.T) (shots []shot, refused int) {
	t.Helper()
	seen := &arrivals{at: map[string]time.Time{}}
	provider, err := mock.New(mock.Options{Provider: "generic", Requests: sim.Rate{N: b.size, Window: b.window}, Algorithm: "rolling", Log: seen, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer provider.Close()
	server := httptest.NewServer(provider)
	defer server.Close()
	home := t.TempDir()
	config := filepath.Join(home, "sluice.yaml")
	text := fmt.Sprintf("presets: off\nresources: {api: {limits: [{name: window, size: %d/%v}]}}\n", b.size, b.window)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	granted := map[string]shot{}
	var running sync.WaitGroup
	places := make(chan struct{}, b.atOnce)
	for i := range b.calls {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			agent := fmt.Sprintf("script-%d", i)
			acquire := exec.Command(sluiceBinary, "acquire", "api", "--agent", agent, "--wait", patience.String(), "--json")
			acquire.Env = built.Env(home, "SLUICE_CONFIG="+config, "SLUICE_STORE=file:"+filepath.Join(home, "state"))
			said, err := acquire.Output()
			ended := time.Now()
			var grant struct {
				GrantedAt time.Time `json:"granted_at"`
			}
			if err == nil {
				err = json.Unmarshal(said, &grant)
			}
			if err != nil {
				t.Errorf("%s: %v: %s", agent, err, said)
				return
			}
			mu.Lock()
			granted[agent] = shot{granted: grant.GrantedAt, ended: ended}
			mu.Unlock()
			send, err := http.NewRequest(http.MethodPost, server.URL+"/v1/work", strings.NewReader("{}"))
			if err != nil {
				t.Error(err)
				return
			}
			send.Header.Set("X-Agent-Id", agent)
			resp, err := http.DefaultClient.Do(send)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	running.Wait()
	for agent, s := range granted {
		s.arrived = seen.at[agent]
		shots = append(shots, s)
	}
	slices.SortFunc(shots, func(x, y shot) int { return x.arrived.Compare(y.arrived) })
	return shots, seen.refused
}

// judge looks at every window of the provider's. If one has too many requests, one of them must have arrived later than the
// gate assumes. Otherwise the gate was wrong.
func (b *burst) judge(t *testing.T) {
	t.Helper()
	shots, refused := b.play(t)
	if len(shots) != b.calls {
		t.Fatalf("%d of %d requests were granted", len(shots), b.calls)
	}
	for name, gap := range map[string]func(s shot) time.Duration{
		"from the grant to the end of the command": func(s shot) time.Duration { return s.ended.Sub(s.granted) },
		"from there to the arrival":                func(s shot) time.Duration { return s.arrived.Sub(s.ended) },
		"from the grant to the arrival":            func(s shot) time.Duration { return s.arrived.Sub(s.granted) },
	} {
		var gaps []time.Duration
		for _, s := range shots {
			gaps = append(gaps, gap(s))
		}
		slices.Sort(gaps)
		within, _ := slices.BinarySearch(gaps, b.slack)
		t.Logf("%s: median %v, 99%% %v, most %v; %d of %d above %v", name, gaps[len(gaps)/2].Round(time.Millisecond), gaps[len(gaps)*99/100].Round(time.Millisecond),
			gaps[len(gaps)-1].Round(time.Millisecond), len(gaps)-within, len(gaps), b.slack)
	}
	t.Logf("%d were refused", refused)
	size := int(b.size)
	for i := size; i < len(shots); i++ {
		window := shots[i-size : i+1]
		if window[size].arrived.Sub(window[0].arrived) >= b.window {
			continue
		}
		if !slices.ContainsFunc(window, func(s shot) bool { return s.arrived.Sub(s.granted) > b.slack }) {
			t.Fatalf("%d requests arrived within %v, each at most %v after its grant, limit %d", len(window), b.window, b.slack, b.size)
		}
	}
}

// Scripts that begin at once compete for the machine: what the command does after its grant counts against the time that
// the request has.
func TestABurstOfScriptsIsOverTheLimitOnlyByLateArrivals(t *testing.T) {
	b := burst{calls: 50, atOnce: 50, size: 20, window: 4 * time.Second, slack: time.Second}
	b.judge(t)
}
