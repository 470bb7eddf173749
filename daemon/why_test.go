package daemon_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/daemon"
)

// Refused requests take a search of the event log, so they are listed only when asked for.
func TestWhyListsRefusedRequestsWhenAsked(t *testing.T) {
	r, searched := beginAPI(t, "resources: {api: {limits: [{name: minute, size: 5/min}]}}\n"), 0
	d, err := daemon.New(daemon.Options{File: r.file, Gate: r.gate, Rejected: func(resource, agent string) any {
		searched++
		return []string{resource, agent}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Settle()
	r.daemon = d
	for _, query := range []string{"", "?refused=false", "?resource=api&agent=a"} {
		if out := r.want(200, "GET", "/v1/why"+query, ``); out["refused"] != nil || searched != 0 {
			t.Errorf("%s: %v after %d searches", query, out, searched)
		}
	}
	if out := r.want(200, "GET", "/v1/why?refused=true&resource=api&agent=a", ``); fmt.Sprint(out["refused"]) != "[api a]" || searched != 1 {
		t.Errorf("%v after %d searches", out, searched)
	}
	if out := r.want(200, "GET", "/v1/why?refused=true&ticket=api.1-1", ``); fmt.Sprint(out["refused"]) != "[]" || searched != 1 {
		t.Errorf("%v after %d searches", out, searched)
	}
}

// The list of waiting requests is bounded, reports how many more there are, and holds the next ones of every queue.
func TestWhyIsBounded(t *testing.T) {
	r := begin(t, "generic", "resources:\n  one: {limits: [{name: inflight, concurrency: 1}]}\n  two: {limits: [{name: inflight, concurrency: 1}]}\n", nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	held := map[string]sluice.Ticket{}
	for _, name := range []string{"one", "two"} {
		tk, err := r.gate.Acquire(ctx, sluice.Request{Resource: name, Agent: "holder"})
		if err != nil {
			t.Fatal(err)
		}
		held[name] = tk
	}
	queue := func(resource string, n int) {
		for i := range n {
			wait.Go(func() {
				_, _ = r.gate.Acquire(ctx, sluice.Request{Resource: resource, Agent: fmt.Sprintf("%s-%d", resource, i)}) // until the test is over
			})
		}
	}
	queue("one", 12)
	queue("two", 2)
	why := func(query string) (list []any, more int) {
		t.Helper()
		out := r.want(200, "GET", "/v1/why"+query, ``)
		return out["waiting"].([]any), int(out["more"].(float64))
	}
	patience, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	for {
		if list, _ := why(""); len(list) == 14 {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-patience.Done():
			t.Fatal("they never queued")
		}
	}
	of := func(list []any, resource string) (n int) {
		for _, w := range list {
			if w.(map[string]any)["resource"] == resource {
				n++
			}
		}
		return n
	}
	if list, more := why(""); len(list) != 14 || more != 0 {
		t.Errorf("%d and %d more", len(list), more)
	}
	if list, more := why("?limit=6"); len(list) != 6 || more != 8 || of(list, "one") != 4 || of(list, "two") != 2 {
		t.Errorf("%d, %d of them for one, and %d more", len(list), of(list, "one"), more)
	}
	list, more := why("?resource=one&limit=3")
	if len(list) != 3 || more != 9 || list[0].(map[string]any)["position"] != float64(1) || list[2].(map[string]any)["position"] != float64(3) {
		t.Errorf("%v and %d more", list, more)
	}
	if list, more := why("?agent=two-1&limit=1"); len(list) != 1 || more != 0 || list[0].(map[string]any)["reason"] != "limit" {
		t.Errorf("%v and %d more", list, more)
	}
	for _, bad := range []string{"0", "-1", "10001", "many", "1.5"} {
		r.want(400, "GET", "/v1/why?limit="+bad, ``)
	}
	r.want(400, "GET", "/v1/why?refused=some", ``)
	r.want(404, "GET", "/v1/why?resource=none", ``)
	for _, tk := range held {
		_ = tk.Close()
	}
}
