package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	processes = 8
	patience  = 3 * time.Minute // for one run of the fleet
	headStart = 4 * time.Second // for the processes to start
)

// burst is a number of calls that an agent makes at once. It begins At milliseconds after the start, or when the
// agent's previous burst is done if that is later.
type burst struct {
	At    int `json:"at"`
	Calls int `json:"calls"`
}

// agent is one agent of the fleet.
type agent struct {
	Name   string  `json:"name"`
	Class  string  `json:"class"`
	Base   string  `json:"base"`
	Bursts []burst `json:"bursts"`
}

// agents returns the fleet. 8 urgent agents make a call now and then. 16 agents make two bursts of three calls. 16 work
// in the background: half of them want all their calls at once, the others make one call after the other.
func agents() []agent {
	var all []agent
	for i := range 40 {
		a := agent{Name: fmt.Sprintf("a%02d", i)}
		switch i % 5 {
		case 0:
			a.Class = "p0"
			for n := range 6 {
				a.Bursts = append(a.Bursts, burst{At: 500 + 200*i + 7000*n, Calls: 1})
			}
		case 1, 2:
			a.Class, a.Bursts = "p1", []burst{{At: 30 * i, Calls: 3}, {At: 4000 + 30*i, Calls: 3}}
		case 3:
			a.Class, a.Bursts = "p2", []burst{{At: 5 * i, Calls: 6}}
		case 4:
			a.Class, a.Bursts = "p2", slices.Repeat([]burst{{At: 5 * i, Calls: 1}}, 6)
		}
		all = append(all, a)
	}
	return all
}

// calls returns the number of calls of all agents.
func calls(all []agent) (n int) {
	for _, a := range all {
		for _, b := range a.Bursts {
			n += b.Calls
		}
	}
	return n
}

// ended is a finished or failed call.
type ended struct {
	Agent  string `json:"agent"`
	Class  string `json:"class"`
	Asked  int64  `json:"asked"` // in milliseconds since 1970
	Done   int64  `json:"done"`
	Failed string `json:"failed"`
}

func (e *ended) took() time.Duration { return time.Duration(e.Done-e.Asked) * time.Millisecond }

// limit is the configuration of a limiter inside the agents' programs.
type limit struct {
	Size   int64        `json:"size"`
	Window int64        `json:"windowMillis"`
	Redis  redisAddress `json:"redis"`
	File   string       `json:"file"`
}

// plan is the input of a process of the fleet.
type plan struct {
	Gate       string         `json:"gate"`
	Limit      limit          `json:"limit"`
	Model      string         `json:"model"`
	Key        string         `json:"key"`
	Begin      int64          `json:"begin"`
	Agents     []agent        `json:"agents"`
	Priorities map[string]int `json:"priorities,omitempty"`
}

// runFleet runs all agents to their end, or until patience is over. It returns the calls that have ended, and the start
// time.
func runFleet(ctx context.Context, w *way, l limit) (done []ended, began time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, headStart+patience)
	defer cancel()
	began = time.Now().Add(headStart)
	all := agents()
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		first error
	)
	for i := range processes {
		p := plan{Gate: w.gate, Limit: l, Model: model, Key: w.key, Begin: began.UnixMilli(), Priorities: w.priorities}
		for n, a := range all {
			if n%processes == i {
				a.Base = w.bases[n%len(w.bases)]
				p.Agents = append(p.Agents, a)
			}
		}
		wg.Go(func() {
			err := node(ctx, "fleet.mjs", p, func(line []byte) {
				var e ended
				if json.Unmarshal(line, &e) != nil || e.Agent == "" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				done = append(done, e)
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil && ctx.Err() == nil {
				first = err
			}
		})
	}
	wg.Wait()
	return done, began, first
}

// node runs a script with a plan as its input, and calls heard with each line that it prints.
func node(ctx context.Context, script string, plan any, heard func(line []byte)) error {
	in, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", script)
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.Env = "node", bytes.NewReader(in), &errs, plainEnv()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%w\nhint: scripts/need-node installs node", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		heard(lines.Bytes())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, tail(errs.String()))
	}
	return nil
}

// tail returns the last lines of a program's output.
func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// quantile returns the q-quantile of all values, or 0 if there are none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}
