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

// chaosClasses are the classes of agents. Each gate has one agent of each class.
var chaosClasses = []string{"p0", "p1", "p2"}

// chaosCallers is the number of concurrent callers of each agent. It is large enough that each agent always has a
// request waiting.
const chaosCallers = 3

// chaosLoad is a set of agents that send requests without a pause.
type chaosLoad struct {
	ctx     context.Context
	cancel  context.CancelFunc
	ending  atomic.Bool
	running sync.WaitGroup
	codes   sync.Map // number of responses by status: *atomic.Int64
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

// agent sends until the load ends. It finishes the request that it has begun.
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

// send sends one request and returns the status of the response, or 0 if there is none.
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
	_, _ = io.Copy(io.Discard, resp.Body) // only the status matters
	_ = resp.Body.Close()
	return resp.StatusCode
}

// finish stops the agents after their current requests.
func (l *chaosLoad) finish() {
	l.ending.Store(true)
	l.running.Wait()
}

// stop cancels the agents' current requests and stops them.
func (l *chaosLoad) stop() {
	l.ending.Store(true)
	l.cancel()
	l.running.Wait()
}
