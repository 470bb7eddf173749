package through_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/store"
)

// squad is a fleet of callers that know nothing of each other: each worker sends, backs off when it is refused, and goes
// on when it has an answer. It keeps an access log.
type squad struct {
	p       *preset
	direct  bool
	calls   int // of each agent
	workers int
	apart   time.Duration // between the starts of two workers

	mu    sync.Mutex
	log   bytes.Buffer
	began time.Time
}

var squadClasses = map[string]string{"chat": "p0", "review": "p0", "docs": "p1", "tests": "p1", "index": "p2", "crawl": "p2"}

// run makes all calls, and returns how long they took.
func (s *squad) run() time.Duration {
	s.began = time.Now()
	var all sync.WaitGroup
	start := time.Duration(0)
	for _, agent := range slices.Sorted(maps.Keys(squadClasses)) {
		next := make(chan int, s.calls)
		for i := range s.calls {
			next <- i
		}
		close(next)
		for range s.workers {
			start += s.apart
			wait := start
			all.Go(func() {
				time.Sleep(wait)
				for i := range next {
					s.call(agent, i)
				}
			})
		}
	}
	all.Wait()
	return time.Since(s.began)
}

// call sends until there is an answer that is no refusal.
func (s *squad) call(agent string, i int) {
	chance := rand.New(rand.NewPCG(uint64(i), uint64(len(agent)+int(agent[0]))))
	wait := 500 * time.Millisecond
	for {
		status, asked := s.send(agent, i)
		if status != http.StatusTooManyRequests {
			return
		}
		time.Sleep(max(wait+time.Duration(float64(wait/4)*chance.Float64()), asked))
		wait = min(2*wait, 32*time.Second)
	}
}

func (s *squad) send(agent string, i int) (status int, asked time.Duration) {
	t := s.p.t
	body, _ := json.Marshal(map[string]any{
		"model": "model-1", "max_tokens": 20, "messages": []map[string]string{{"role": "user", "content": fmt.Sprint("request ", i, " of ", agent)}},
	})
	address := s.p.gateURL + "/@" + agent + ":" + squadClasses[agent] + "/" + s.p.name
	if s.direct {
		address = s.p.providerURL
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+paths[s.p.name], bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	q.Header.Set("X-Api-Key", "one key")
	q.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := s.p.client.Do(q)
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	var said struct {
		Usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
	}
	_ = json.Unmarshal(answer, &said)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.NewEncoder(&s.log).Encode(map[string]any{
		"time": began, "caller": agent, "model": "model-1", "status": resp.StatusCode, "duration_ms": float64(time.Since(began)) / 1e6,
		"input_tokens": said.Usage.Input, "output_tokens": said.Usage.Output,
	})
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return resp.StatusCode, time.Duration(seconds) * time.Second
}

// The log of a fleet without the gate tells what the gate makes of it: refusals and duration of the real gate are within
// 5% of what the replay says. Time is virtual, the gate, the proxy and the provider are the real ones.
func TestReplayPredictsTheGate(t *testing.T) {
	for _, c := range []struct {
		name           string
		options        mock.Options
		calls, workers int
		change         func(*sluice.Resource)
	}{
		{"bucket", mock.Options{Requests: rate(120, time.Minute), Latency: 300 * time.Millisecond, Tail: 100 * time.Millisecond}, 28, 6, nil},
		{"rolling", mock.Options{Requests: rate(60, time.Minute), Algorithm: "rolling", Latency: 200 * time.Millisecond}, 20, 4, func(r *sluice.Resource) {
			r.Limits = []sluice.Limit{{Name: sluice.Requests, Kind: sluice.Rolling, Size: 60, Window: time.Minute}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Provider, c.options.Seed = "anthropic", 1
			var log []byte
			var without, with time.Duration
			var refused, refusedThrough int64
			synctest.Test(t, func(t *testing.T) {
				s := &squad{p: presetFor(t, c.options), direct: true, calls: c.calls, workers: c.workers, apart: 7 * time.Millisecond}
				without = s.run()
				log, refused = bytes.Clone(s.log.Bytes()), s.p.mock.Stats().Throttled
			})
			synctest.Test(t, func(t *testing.T) {
				s := &squad{p: presetWith(t, c.options, c.change, nil), calls: c.calls, workers: c.workers, apart: 7 * time.Millisecond}
				with = s.run()
				refusedThrough = s.p.mock.Stats().Throttled
			})
			setup := replay.Setup{}
			if c.name == "rolling" { // too short a log to tell it from a bucket
				setup.Limits = []sim.Limit{{Name: "requests", Kind: store.Rolling, Unit: sim.Requests, Size: 60, Window: time.Minute}}
			}
			rep := foretold(t, log, setup)
			t.Logf("without the gate %v, %d refused; with it %v, %d refused; foretold %.3f s, %d refused; limits %+v, explained %+v",
				without, refused, with, refusedThrough, rep.Gate.DurationS, rep.Gate.Throttled, rep.Limits, rep.Explained)
			if rep.Format != replay.Access || rep.Log.Throttled != int(refused) || math.Abs(rep.Log.DurationS-without.Seconds()) > 0.01 {
				t.Errorf("the log is read as %+v", rep.Log)
			}
			if rep.Log.Calls != c.calls*len(squadClasses) || rep.Gate.Finished != rep.Log.Calls {
				t.Errorf("%d calls in the log, %d finished with the gate, want %d", rep.Log.Calls, rep.Gate.Finished, c.calls*len(squadClasses))
			}
			if rep.Limits[0].Size != c.options.Requests.String() || c.name != rep.Limits[0].Kind {
				t.Errorf("the limit found is %+v", rep.Limits[0])
			}
			if off := math.Abs(rep.Gate.DurationS-with.Seconds()) / with.Seconds(); off > 0.05 {
				t.Errorf("the duration is foretold as %.1f s and was %v: %.1f%% off", rep.Gate.DurationS, with, off*100)
			}
			if math.Abs(float64(rep.Gate.Throttled)-float64(refusedThrough)) > 0.05*float64(refusedThrough) {
				t.Errorf("%d refusals are foretold, %d there were", rep.Gate.Throttled, refusedThrough)
			}
		})
	}
}

// foretold replays an access log.
func foretold(t *testing.T, log []byte, setup replay.Setup) *replay.Report {
	t.Helper()
	l, err := replay.Read("-", "", "", bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	setup.Assumptions, setup.Seed = replay.Assumptions{RetryWithin: replay.DefaultRetryWithin, Follow: replay.DefaultFollow}, 1
	setup.Class = func(caller string) string { return squadClasses[caller] }
	r, err := replay.New(l, setup)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Run()
	if err != nil {
		t.Fatal(err)
	}
	return rep
}
