package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// chaosClasses are the classes of agents. Each gate has one agent of each.
var chaosClasses = []string{"p0", "p1", "p2"}

// chaosCallers send for each agent: one request of each agent always waits.
const chaosCallers = 3

// chaosLoad is agents that send without a pause.
type chaosLoad struct {
	ctx     context.Context
	cancel  context.CancelFunc
	ending  atomic.Bool
	running sync.WaitGroup
	codes   sync.Map // by status: *atomic.Int64
}

func startChaosLoad(ctx context.Context, gates []*daemonProcess) *chaosLoad {
	l := &chaosLoad{}
	l.ctx, l.cancel = context.WithCancel(ctx)
	for i, g := range gates {
		for _, class := range chaosClasses {
			for range chaosCallers {
				l.running.Go(func() { l.agent(g, fmt.Sprintf("g%d-%s", i, class), class) })
			}
		}
	}
	return l
}

// agent sends until the load ends. A request that has begun is waited for.
func (l *chaosLoad) agent(g *daemonProcess, name, class string) {
	for !l.ending.Load() && l.ctx.Err() == nil {
		code := l.send(g, name, class)
		count, _ := l.codes.LoadOrStore(code, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		if code != http.StatusOK {
			pause(l.ctx, 100*time.Millisecond)
		}
	}
}

// send sends one request and returns the status of its answer, 0 if there is none.
func (l *chaosLoad) send(g *daemonProcess, name, class string) int {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodPost, "http://gate/@"+name+":"+class+"/api/work", strings.NewReader("{}"))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Agent-Id", name)
	resp, err := g.client.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the status says all
	_ = resp.Body.Close()
	return resp.StatusCode
}

// finish lets agents end what they have begun.
func (l *chaosLoad) finish() {
	l.ending.Store(true)
	l.running.Wait()
}

// stop ends agents at once.
func (l *chaosLoad) stop() {
	l.ending.Store(true)
	l.cancel()
	l.running.Wait()
}
