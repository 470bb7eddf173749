package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// The limits of the pools that the command acquires from: a short window, and the longest window for which Sluice
// promises not to lose charges.
const (
	cliWindow    = 2 * time.Second
	cliSize      = 10
	cliLongSize  = 6
	cliSlack     = time.Second // slack of both windows
	cliConfig    = "resources:\n  short: {arrival_slack: 1s, limits: [{name: window, size: 10/2s}]}\n  long: {arrival_slack: 1s, limits: [{name: window, size: 6/10m}]}\n"
	cliShells    = 3
	cliNotNow    = 75
	cliNoStore   = 69
	cliCallLimit = time.Minute
)

// cliUse is a call of the command that got a ticket.
type cliUse struct {
	resource string
	use
}

// cliCaller calls the command.
type cliCaller struct {
	program, config, url, state string

	mu     sync.Mutex
	uses   []cliUse
	errors map[string]int
	first  map[string]string // text of the first error of each kind
	slow   int               // granted calls that took longer than the slack, so their time of use is uncertain
}

// cliFlushed calls sluice acquire from several shells and sends FLUSHALL in the middle.
func cliFlushed(c *campaign, x *run, r *rig) error {
	program, err := c.cli()
	if err != nil {
		return err
	}
	config := filepath.Join(r.fleet.dir, "sluice.yaml")
	if err := os.WriteFile(config, []byte(cliConfig), 0o600); err != nil {
		return err
	}
	k := &cliCaller{program: program, config: config, url: r.url(0), state: r.fleet.stateHome(0), errors: x.Errors, first: map[string]string{}}
	ctx, stop := context.WithCancel(r.ctx)
	var shells sync.WaitGroup
	x.start = now()
	for i := range cliShells {
		shells.Go(func() { k.shell(ctx, i) })
	}
	err = errors.Join(r.sleep(c.load/5), r.until(warmWithin, func() bool { return len(k.since("short", 0)) > 0 && len(k.since("long", 0)) > 0 }))
	x.began = now()
	if err == nil {
		err = flushed(r)
	}
	x.over = now()
	err = errors.Join(err, r.sleep(c.load*4/5), r.until(backWithin, func() bool { return len(k.since("short", x.over)) > 0 }))
	x.stop = now()
	stop()
	shells.Wait()
	if err != nil {
		return err
	}
	x.cliFigures(k)
	keys, err := r.eternal()
	if err != nil {
		return fmt.Errorf("look at the keys: %w", err)
	}
	if len(keys) > 0 {
		x.broke("%d keys in Redis never expire, such as %s", len(keys), keys[0])
	}
	return nil
}

// shell calls the command in a loop until ctx ends.
func (k *cliCaller) shell(ctx context.Context, number int) {
	for i := 0; ctx.Err() == nil; i++ {
		resource := "short"
		if i%4 == 3 {
			resource = "long"
		}
		k.call(ctx, resource, number)
		pause(ctx, 30*time.Millisecond)
	}
}

// call acquires once, without waiting.
func (k *cliCaller) call(ctx context.Context, resource string, shell int) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), cliCallLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, k.program, "acquire", resource, "--agent", fmt.Sprintf("shell-%d", shell),
		"--wait", "0", "--json", "--store", k.url, "--config", k.config)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+k.state)
	var said tailBuffer
	cmd.Stderr = &said
	asked := now()
	out, err := cmd.Output()
	used := now()
	var reply struct{ Ticket string }
	k.mu.Lock()
	defer k.mu.Unlock()
	code := cmd.ProcessState.ExitCode()
	switch {
	case err == nil && json.Unmarshal(out, &reply) == nil && reply.Ticket != "":
		if used.sub(asked) > cliSlack {
			k.slow++ // Sluice assumes that it arrived within the slack, but it may have been later
			return
		}
		k.uses = append(k.uses, cliUse{resource, use{worker: shell, id: reply.Ticket, asked: asked, used: used}})
	case code == cliNotNow:
		k.errors["notnow"]++
	case code == cliNoStore:
		k.fail("store", said.String())
	default:
		k.fail("other", fmt.Sprintf("exit code %d: %s %s", code, said.String(), out))
	}
}

func (k *cliCaller) fail(kind, text string) {
	if k.errors[kind]++; k.errors[kind] == 1 {
		k.first[kind] = kind + ": " + oneLine(text)
	}
}

// since returns the uses of a resource from a time on.
func (k *cliCaller) since(resource string, from stamp) []use {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []use
	for _, u := range k.uses {
		if u.resource == resource && u.used >= from {
			list = append(list, u.use)
		}
	}
	return list
}
