package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/setup"
	"github.com/sluicehq/sluice/internal/trial"
)

// checksAtOnce is how many clients are checked at the same time. Some take half a gigabyte.
const checksAtOnce = 2

// check makes one call of each client through a gate to a model of its provider, and notes the results.
func (p *setupJSON) check(cmd *cobra.Command, table *clients.Table) error {
	ctx, stop := withSignals(cmd.Context())
	defer stop()
	bench, err := trial.Open(ctx, table)
	if err != nil {
		return &failure{code: exitUnavailable, message: "the gate for the check could not be started: " + err.Error(), hint: "look at TMPDIR and at the space there"}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "sluice: checking %d clients; some take a minute\n", len(p.Clients))
	p.tryAll(ctx, bench)
	if err := bench.Close(); err != nil {
		return &failure{code: exitUnavailable, message: "the gate for the check could not be closed: " + err.Error(), hint: "look at TMPDIR"}
	}
	if caught := signalOf(ctx); caught != nil {
		f := asFailure(caught.failure("checking clients"))
		f.hint = "no file was written"
		return f
	}
	return nil
}

func (p *setupJSON) tryAll(ctx context.Context, bench *trial.Bench) {
	room := make(chan struct{}, checksAtOnce)
	var all sync.WaitGroup
	defer all.Wait()
	for i := range p.Clients {
		c := &p.Clients[i]
		room <- struct{}{}
		if ctx.Err() != nil {
			return
		}
		all.Go(func() {
			defer func() { <-room }()
			note(c, bench.Try(ctx, c.Known, c.Program))
		})
	}
}

// note records the result of a client's check.
func note(c *setup.Client, err error) {
	if err != nil {
		c.Problem = err.Error()
	}
	if _, untried := errors.AsType[trial.Untried](err); !untried {
		c.Checked = new(err == nil)
	}
}

// failed returns the failure of a check, or nil if no client failed.
func (p *setupJSON) failed() error {
	var names []string
	for i := range p.Clients {
		if c := &p.Clients[i]; c.Checked != nil && !*c.Checked {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	f := &failure{
		extra: map[string]any{}, code: exitUnavailable, message: fmt.Sprintf("%d of %d clients failed the check: %s", len(names), len(p.Clients), strings.Join(names, ", ")),
		hint: "docs/clients-table.md has the versions that were tested",
	}
	var fields map[string]json.RawMessage
	text, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return &failure{code: exitInternal, message: err.Error()}
	}
	for name, value := range fields {
		f.extra[name] = value
	}
	return f
}

// checkLine describes the result of a client's check.
func checkLine(c *setup.Client) string {
	switch {
	case c.Checked == nil:
		return "not checked: " + c.Problem
	case !*c.Checked:
		return "check: failed: " + c.Problem
	}
	return "check: ok"
}
