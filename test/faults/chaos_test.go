package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sim/mock"
)

// A seed always gives the same plan, a different one for each store, with only the faults that the store can have.
func TestAChaosPlanIsItsSeed(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(300) {
		for _, on := range chaosStores {
			p := newChaosPlan(seed, on)
			if p.String() != newChaosPlan(seed, on).String() {
				t.Fatalf("seed %d on %s has two plans", seed, on)
			}
			if len(p.steps) < 2 || len(p.steps) > chaosMost+chaosGates+chaosClocks {
				t.Errorf("seed %d on %s has %d steps", seed, on, len(p.steps))
			}
			if !slices.IsSortedFunc(p.steps, func(a, b chaosStep) int { return int(a.at - b.at) }) {
				t.Errorf("seed %d on %s is not in order:\n%v", seed, on, p)
			}
			for _, s := range p.steps {
				seen[s.kind.name] = true
				if s.kind.stores != nil && !slices.Contains(s.kind.stores, on) || s.gate >= p.gates() || s.at > chaosSpan {
					t.Errorf("seed %d on %s has %v", seed, on, s)
				}
			}
		}
	}
	for _, k := range append(chaosKinds(), upgradeKind, clockKind) {
		if !seen[k.name] {
			t.Errorf("no seed has %s", k.name)
		}
	}
	if newChaosPlan(1, onFile).String() == newChaosPlan(2, onFile).String() {
		t.Error("two seeds have the same plan")
	}
}

// A Redis that writes every change to disk loses nothing when it is killed, but it does when it is flushed.
func TestWhatAChaosPlanLoses(t *testing.T) {
	var kill, flush *chaosKind
	for _, k := range storeKinds() {
		switch k.name {
		case killRedis:
			kill = k
		case "redis-flush":
			flush = k
		}
	}
	for _, c := range []struct {
		kind  *chaosKind
		keeps bool
		loses bool
	}{{kill, true, false}, {kill, false, true}, {flush, true, true}} {
		p := chaosPlan{store: onRedis, keeps: c.keeps, steps: []chaosStep{{kind: c.kind}}}
		if p.loses() != c.loses {
			t.Errorf("%s, keeps %v: loses %v", c.kind.name, c.keeps, p.loses())
		}
	}
}

// Seed 15 on file and seed 18 on redis make a limit smaller and then larger in three processes. The limit once stayed
// small.
func TestSeeds15And18MakeALimitSmaller(t *testing.T) {
	for seed, on := range map[uint64]string{15: onFile, 18: onRedis} {
		smaller := slices.ContainsFunc(newChaosPlan(seed, on).steps, func(s chaosStep) bool {
			size, _ := otherConfig(s.pick)
			return s.kind.name == reloadKind && size < chaosSize
		})
		if !smaller {
			t.Errorf("seed %d on %s makes no limit smaller:\n%v", seed, on, newChaosPlan(seed, on))
		}
	}
	if _, more := otherConfig(1); !strings.HasPrefix(more, "resources") {
		t.Errorf("no mistake: %q", more)
	}
}

// arrivals returns log entries at these times, in milliseconds.
func arrivals(outcome string, agents []string, moments ...int) (log []mock.Entry) {
	begin := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for i, m := range moments {
		log = append(log, mock.Entry{Time: begin.Add(time.Duration(m) * time.Millisecond), Agent: agents[i%len(agents)], Outcome: outcome})
	}
	return log
}

func TestWorstWindow(t *testing.T) {
	agents := []string{"g0-p0"}
	for name, c := range map[string]struct {
		log           []mock.Entry
		most, refused int
	}{
		"none":     {nil, 0, 0},
		"apart":    {arrivals("accepted", agents, 0, 1000, 2000), 1, 0},
		"across":   {arrivals("accepted", agents, 0, 900, 950, 1100), 3, 0},
		"refused":  {arrivals("throttled", agents, 0, 1), 2, 2},
		"no count": {arrivals("failed", agents, 0, 1, 2), 0, 0},
	} {
		if most, refused := worstWindow(c.log, time.Second); most != c.most || refused != c.refused {
			t.Errorf("%s: %d in a window, %d refused", name, most, refused)
		}
	}
}

func TestFullUseNeedsAllGatesAndClasses(t *testing.T) {
	var all, noClass, noGate []string
	for i := range 2 {
		for _, class := range chaosClasses {
			name := fmt.Sprintf("g%d-%s", i, class)
			all = append(all, name)
			if class != "p2" {
				noClass = append(noClass, name)
			}
			if i == 0 {
				noGate = append(noGate, name)
			}
		}
	}
	var moments []int
	for i := range 2 * chaosSize {
		moments = append(moments, i*100)
	}
	for want, log := range map[string][]mock.Entry{
		"":                    arrivals("accepted", all, moments...),
		"class p2 had none":   arrivals("accepted", noClass, moments...),
		"gate 1 had none":     arrivals("accepted", noGate, moments...),
		"and full use is":     arrivals("accepted", all, moments[:chaosSize]...),
		"0 requests in":       arrivals("throttled", all, moments...),
		"0 requests in 4s, a": nil,
	} {
		got := lacking(log, 2*chaosWindow, time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC), 2)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A lie changes the provider's response, but never what its log counts.
func TestTheLiarLies(t *testing.T) {
	l, err := startLiar(1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.stop()
	send := func() *http.Response {
		w := httptest.NewRecorder()
		l.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/work", strings.NewReader("{}")))
		return w.Result()
	}
	if r := send(); r.StatusCode != http.StatusOK || r.Header.Get("RateLimit") == "" || len(l.log()) != 1 {
		t.Errorf("honest: %s, %v, %d in the log", r.Status, r.Header, len(l.log()))
	}
	for _, c := range []struct {
		lie    lie
		status int // the least
		counts int
	}{{lie{part: 1, refuse: true}, 429, 0}, {lie{part: 1, fail: true}, 500, 0}, {lie{part: 1, headers: true}, 200, 1}} {
		before := len(l.log())
		l.begin(&c.lie)
		r := send()
		l.end(&c.lie)
		if r.StatusCode < c.status || len(l.log()) != before+c.counts {
			t.Errorf("%+v: %s, %d more in the log", c.lie, r.Status, len(l.log())-before)
		}
	}
	if r := send(); r.StatusCode != http.StatusOK {
		t.Errorf("honest again: %s", r.Status)
	}
	if n, _ := l.busiest(0); n != 1 {
		t.Errorf("%d at a time", n)
	}
	if l.refused != 1 {
		t.Errorf("%d were refused by a lie", l.refused)
	}
}

// A request counts as in progress until its answer is sent or its client is gone, which the provider may notice late. Seed
// 558 on files once counted requests of a gate that had ended.
func TestBusiest(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	l := &liar{spans: []progress{
		{begin: at(0), end: at(500), left: true},
		{begin: at(100), end: at(500)},
		{begin: at(200), end: at(300)},
		{begin: at(450), end: at(460), left: true}, // it left before the provider saw the request
		{begin: at(470)},
	}}
	for late, want := range map[time.Duration]int{0: 3, 250 * time.Millisecond: 3, 350 * time.Millisecond: 2} {
		if n, them := l.busiest(late); n != want {
			t.Errorf("%d at a time if it notices within %v, want %d: %s", n, late, want, them)
		}
	}
}

// The provider did not notice that a client had left while the request was late, because it had not read the request.
func TestTheProviderNoticesThatAClientLeft(t *testing.T) {
	l, err := startLiar(1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.stop()
	released := make(chan struct{})
	l.hold = released
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.addr+"/work", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})
	state := func() (begun, over bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.spans) > 0, len(l.spans) > 0 && l.spans[0].left
	}
	for begun := false; !begun; begun, _ = state() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	done.Wait()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, over := state(); over {
			break
		}
		if time.Now().After(end) {
			t.Error("it did not notice")
			break
		}
	}
	close(released)
}

// Seed 16 on redis once read the numbers of a gate that could not reach the store as zeros.
func TestAGateWithoutItsStoreIsNotEmpty(t *testing.T) {
	for _, c := range []struct {
		text  string
		empty bool
	}{
		{`{"in_flight":0,"waiting":{"p0":0}}`, true},
		{`{"in_flight":1,"waiting":{}}`, false},
		{`{"in_flight":0,"waiting":{"p1":1}}`, false},
		{`{"in_flight":null,"waiting":{},"sent":null,"outage":{"why":"no answer"}}`, false},
	} {
		var r inspect.ResourceStatus
		if err := json.Unmarshal([]byte(c.text), &r); err != nil || isEmpty(&r) != c.empty {
			t.Errorf("%s: %v, %v", c.text, isEmpty(&r), err)
		}
	}
}

func TestParseChaos(t *testing.T) {
	o, err := parseChaos([]string{"-seed", "7", "-seeds", "3", "-store", "file,redis", "-for", "1m"}, io.Discard)
	if err != nil || o.seed != 7 || o.seeds != 3 || o.lasts != time.Minute || !slices.Equal(o.stores, []string{onFile, onRedis}) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parseChaos(nil, io.Discard); err != nil || !slices.Equal(o.stores, chaosStores) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"x"}, {"-store", "etcd"}, {"-seeds", "0"}, {"-atonce", "0"}} {
		if _, err := parseChaos(bad, io.Discard); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestChaosTable(t *testing.T) {
	p := newChaosPlan(1, onFile)
	text := chaosTable([]chaosResult{
		{plan: p, requests: 80, worst: 20, back: time.Second},
		{plan: p, requests: 80, worst: 21, broken: []string{"x"}},
		{plan: p, unjudged: []string{"slow"}},
	})
	if !strings.Contains(text, "file") || strings.Contains(text, "redis") || !strings.Contains(text, "21 of 20") || !strings.HasSuffix(strings.TrimSpace(text), "1       1") {
		t.Error(text)
	}
}
