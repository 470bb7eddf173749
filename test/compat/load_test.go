//go:build slow && (linux || darwin)

package compat_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// load is requests that go through daemons all the time.
type load struct {
	*rig
	daemons []atomic.Pointer[daemon]
	served  atomic.Int64
	end     context.CancelFunc
	callers sync.WaitGroup
}

// callersEach is how many requests are under way at each daemon.
const callersEach = 8

// load begins to send through daemons. Each request must be served.
func (r *rig) load(daemons ...*daemon) *load {
	ctx, end := context.WithCancel(r.Context())
	l := &load{rig: r, daemons: make([]atomic.Pointer[daemon], len(daemons)), end: end}
	for i, d := range daemons {
		l.daemons[i].Store(d)
		for n := range callersEach {
			l.callers.Go(func() {
				for ctx.Err() == nil {
					d := l.daemons[i].Load()
					d.using.RLock()
					if d.ended {
						d.using.RUnlock()
						continue // another one takes its place
					}
					status, text := d.get(fmt.Sprintf("caller-%d-%d", i, n), "")
					d.using.RUnlock()
					if status != http.StatusOK {
						r.Errorf("a request was not served: %d %s", status, text)
						return
					}
					l.served.Add(1)
				}
			})
		}
	}
	r.Cleanup(l.stop)
	return l
}

// use has the callers of the ith daemon use another one from now on.
func (l *load) use(i int, d *daemon) { l.daemons[i].Store(d) }

// more waits until more requests were served.
func (l *load) more(n int64) {
	l.Helper()
	want := l.served.Load() + n
	if !soon(func() bool { return l.served.Load() >= want }) {
		l.Fatalf("only %d requests were served, not %d", l.served.Load(), want)
	}
}

// stop ends the load, and checks that the provider got every request that was served.
func (l *load) stop() {
	l.end()
	l.callers.Wait()
	arrived := int64(0)
	for agent, n := range l.mock.Stats().ByAgent {
		if strings.HasPrefix(agent, "caller-") {
			arrived += n
		}
	}
	if served := l.served.Load(); arrived != served && !l.Failed() {
		l.Errorf("%d requests were served, and %d arrived at the provider", served, arrived)
	}
}

// soon waits until something is so.
func soon(so func() bool) bool {
	for began := time.Now(); time.Since(began) < proctest.Patience; time.Sleep(20 * time.Millisecond) {
		if so() {
			return true
		}
	}
	return false
}

// mustServe starts a daemon.
func (r *rig) mustServe(binary, store string, env ...string) *daemon {
	r.Helper()
	d, said := r.serve(binary, store, env...)
	if d == nil {
		r.Fatal(said)
	}
	return d
}

// get sends a request. as is the agent for the gate; empty: none is named.
func (d *daemon) get(agent, as string) (status int, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/api/x", nil)
	if err != nil {
		return 0, err.Error()
	}
	q.Header.Set("X-Agent-Id", agent)
	if as != "" {
		q.Header.Set("X-Sluice-Agent", as)
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return resp.StatusCode, string(b)
}

// metric returns the value of a metric of the resource; -1: it is not there.
func (d *daemon) metric(name string) int {
	resp, err := http.Get(d.url + "/metrics")
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		d.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n"+name+`{resource="api"} `)
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(value)
	if !ok || err != nil {
		return -1
	}
	return n
}

// shows checks that a metric comes to a value.
func (d *daemon) shows(name string, want int) {
	d.Helper()
	if !soon(func() bool { return d.metric(name) == want }) {
		d.Errorf("%s is %d, want %d", name, d.metric(name), want)
	}
}
