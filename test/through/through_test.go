// Package through_test has fleets of clients pass through the proxy to a provider, all of it over HTTP, in virtual time.
package through_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/sluicehttp"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// fleet is a provider behind a gate, and what became of those who went through.
type fleet struct {
	t      *testing.T
	mock   *mock.Server
	gate   *sluice.Gate
	client *http.Client

	mu     sync.Mutex
	done   []sluicehttp.Exchange
	status map[int]int
}

// begin opens a gate for a provider that allows so many requests a minute.
func begin(t *testing.T, perMinute int64, config sluice.Config) *fleet {
	t.Helper()
	return beginWith(t, perMinute, config, nil, nil)
}

// beginWith is begin with another proxy or provider: each of the functions changes one, and nil leaves it as it is.
func beginWith(t *testing.T, perMinute int64, config sluice.Config, change func(*proxy.Options), before func(http.Handler) http.Handler) *fleet {
	t.Helper()
	f := &fleet{t: t, status: map[int]int{}}
	var err error
	f.mock, err = mock.New(mock.Options{
		Provider: "anthropic", Requests: sim.Rate{N: perMinute, Window: time.Minute}, Algorithm: "rolling", Latency: 200 * time.Millisecond, Tail: time.Second, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.mock.Close)
	limits := []sluice.Limit{
		{Name: "minute", Kind: sluice.Rolling, Size: perMinute, Window: time.Minute},
		{Name: "input", Kind: sluice.Bucket, Unit: "input_tokens", Size: 1 << 30, Window: time.Minute},
		{Name: "output", Kind: sluice.Bucket, Unit: "output_tokens", Size: 1 << 30, Window: time.Minute},
	}
	config.Store = "mem:"
	config.Resources = map[string]sluice.Resource{"anthropic": {Limits: limits, SplitKeys: config.Resources["anthropic"].SplitKeys}}
	if f.gate, err = sluice.Open(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.gate.Close() })
	dialect, _ := provider.Lookup("anthropic")
	net := newWires()
	options := proxy.Options{
		Gate: f.gate, Classes: []string{"p0", "p1", "p2"}, Base: net.transport(t), Hosts: []string{"gate"},
		Resources: map[string]proxy.Resource{"anthropic": {
			Upstream: &url.URL{Scheme: "http", Host: "provider"}, Dialect: dialect, Limits: limits, Deadline: 10 * time.Minute,
			Prices: provider.DefaultPrices().Micros,
		}},
		Done: func(x sluicehttp.Exchange) { f.mu.Lock(); f.done = append(f.done, x); f.mu.Unlock() },
	}
	if change != nil {
		change(&options)
	}
	p, err := proxy.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Settle)
	var upstream http.Handler = f.mock
	if before != nil {
		upstream = before(upstream)
	}
	net.serve(t, "provider", upstream)
	net.serve(t, "gate", p)
	f.client = &http.Client{Transport: net.transport(t)}
	return f
}

// send sends one call, and returns how long it took.
func (f *fleet) send(agent, class, body string) time.Duration {
	return f.sendWith("one key for all", agent, class, body)
}

// sendWith is send with a key.
func (f *fleet) sendWith(key, agent, class, body string) time.Duration {
	began := time.Now()
	q, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, fmt.Sprintf("http://gate/@%s:%s/anthropic/v1/messages", agent, class), strings.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return 0
	}
	q.Header.Set("X-Api-Key", key)
	q.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(q)
	if err != nil {
		f.t.Error(err)
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	f.status[resp.StatusCode]++
	f.mu.Unlock()
	return time.Since(began)
}

func call(i int) string {
	b, _ := json.Marshal(map[string]any{
		"model": "claude-haiku-4-5", "max_tokens": 300, "stream": i%3 == 0,
		"messages": []map[string]string{{"role": "user", "content": fmt.Sprintf("request %d: %s", i, strings.Repeat("words ", i%40))}},
	})
	return string(b)
}

// Fifty clients of three classes with one key and a quota of 100 a minute: nobody is turned away, the quota is used, and
// the gate's books are the provider's, to the token and the cent.
func TestFiftyClientsWithOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, perMinute, minutes = 50, 100, 6
		f := begin(t, perMinute, sluice.Config{Budgets: []sluice.Budget{{Name: "all", Per: sluice.BudgetFleet, Micros: 1 << 39, Period: sluice.BudgetTotal, Over: sluice.OverDeny}}})
		began := time.Now()
		end := began.Add(minutes * time.Minute)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var waits []time.Duration
		for c := range clients {
			wg.Go(func() {
				for i := 0; time.Now().Before(end); i++ {
					d := f.send(fmt.Sprintf("agent-%d", c), []string{"p0", "p1", "p2"}[c%3], call(c*1000+i))
					mu.Lock()
					waits = append(waits, d)
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Minute)
		first := f.mock.Stats().Accepted // all of a window that nobody had used
		time.Sleep((minutes - 1) * time.Minute)
		then := f.mock.Stats().Accepted - first
		wg.Wait()
		stats := f.mock.Stats()
		if stats.Throttled != 0 || f.status[http.StatusOK] != len(waits) || stats.WorstWindow > perMinute {
			t.Errorf("%d turned away, clients saw %v, %d in one window", stats.Throttled, f.status, stats.WorstWindow)
		}
		used := float64(then) / (perMinute * (minutes - 1))
		slices.Sort(waits)
		p99 := waits[len(waits)*99/100]
		t.Logf("%d accepted in the first minute, then %.4f of the quota; p99 of an answer %v", first, used, p99)
		if used < 0.97 {
			t.Errorf("%.4f of the quota was used", used)
		}
		// With 50 who ask again at once, who has just missed a window waits for the next.
		if ideal := time.Minute + 1200*time.Millisecond; p99 > ideal+ideal/10 {
			t.Errorf("p99 is %v, ideal %v", p99, ideal)
		}
		f.sameBooks(t, stats)
	})
}

// sameBooks compares what the gate has written down with what the provider has.
func (f *fleet) sameBooks(t *testing.T, stats mock.Stats) {
	t.Helper()
	var input, output, micros int64
	for _, x := range f.done {
		input, output = input+x.Usage.Input, output+x.Usage.Output
		micros += x.Micros
		if !x.Priced {
			t.Errorf("%s is not priced", x.Model)
		}
	}
	var theirs mock.Usage
	for _, u := range stats.Ledger {
		theirs.InputTokens, theirs.OutputTokens = theirs.InputTokens+u.InputTokens, theirs.OutputTokens+u.OutputTokens
	}
	if input != theirs.InputTokens || output != theirs.OutputTokens {
		t.Errorf("%d in, %d out; the provider has %d in, %d out", input, output, theirs.InputTokens, theirs.OutputTokens)
	}
	list, err := f.gate.Budgets(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	bill, _ := provider.DefaultPrices().Micros("claude-haiku-4-5", &provider.Usage{Input: theirs.InputTokens, Output: theirs.OutputTokens})
	if spent := int64(list[0].UsedUSD*1e6 + 0.5); spent != micros || max(spent-bill, bill-spent) > 5000 {
		t.Errorf("spent %d, settled %d, the provider's bill is %d millionths of a dollar", spent, micros, bill)
	}
	s, err := f.gate.Resource(t.Context(), "anthropic")
	if err != nil || s.InFlight != 0 {
		t.Errorf("%d in flight: %v", s.InFlight, err)
	}
}
