//go:build !peersonly

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// This file has what the proxy of a fleet uses of Sluice for each client request.

func init() {
	usedMemory = append(usedMemory, contender{nameUsed, openUsedMemory})
	fileContenders = append(fileContenders, fileContender{nameUsed, 8, nil, openUsedFile})
	usedRedis = append(usedRedis, redisContender{nameUsed, openUsedRedis})
	openCrowd = openUsedCrowd
	openMachine, openContended, openBareContended = openUsedMachine, openUsedContended, openAsked
}

const inputTokens = "input_tokens"

// usedConfig is the preset of a provider, with sizes that nothing here can reach.
const usedConfig = `
resources:
  api:
    provider: anthropic
    limits:
      - {name: requests, size: 100000000/min}
      - {name: input_tokens, size: 100000000000/min}
      - {name: output_tokens, size: 100000000000/min}
`

// fleet is 128 agents in three classes, each with its requests.
type fleet struct {
	gate     *sluice.Gate
	requests [usedAgents]sluice.Request
	callers  []usedCaller
}

// usedCaller reuses its amounts between requests. Making them anew would allocate twice per request.
type usedCaller struct {
	ticket sluice.Ticket
	sent   int
	cost   [2]sluice.Amount
	used   [2]sluice.Amount
}

func openConfigured(ctx context.Context, store, text string) (*sluice.Gate, error) {
	file, err := config.Parse("bench.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		return nil, err
	}
	c, err := file.GateConfig(time.Now())
	if err != nil {
		return nil, err
	}
	c.Store = store
	return sluice.Open(ctx, c)
}

func openFleet(ctx context.Context, store string, callers int) (*fleet, error) {
	gate, err := openConfigured(ctx, store, usedConfig)
	if err != nil {
		return nil, err
	}
	f := &fleet{gate: gate, callers: make([]usedCaller, callers)}
	for i := range f.requests {
		f.requests[i] = sluice.Request{
			Resource: resource, Agent: agentEach(i), Class: fmt.Sprintf("p%d", i%3), Model: "sonnet-4",
		}
	}
	return f, nil
}

// take acquires for a caller. Requests differ in length, as prompts do.
func (f *fleet) take(ctx context.Context, caller int) (err error) {
	c := &f.callers[caller]
	c.sent++
	c.cost = [...]sluice.Amount{{Unit: inputTokens, N: c.input(caller)}, {Unit: sluice.OutputTokens, N: 4096}}
	r := f.requests[caller%usedAgents]
	r.Cost = c.cost[:]
	c.ticket, err = f.gate.Acquire(ctx, r)
	return err
}

func (c *usedCaller) input(caller int) int64 { return int64(1000 + 37*(c.sent%64) + caller) }

// end answers, settles and closes, as the proxy does.
func (f *fleet) end(caller int) error {
	c := &f.callers[caller]
	if _, err := c.ticket.Answer(sluice.Answer{Verdict: store.VerdictOK, Status: 200}); err != nil {
		return err
	}
	c.used = [...]sluice.Amount{{Unit: inputTokens, N: c.input(caller) - 11}, {Unit: sluice.OutputTokens, N: 700}}
	return c.ticket.Close(c.used[:]...)
}

func openUsedMemory(keys []string) (func(string) bool, func(), error) {
	f, err := openFleet(context.Background(), "mem:", len(keys))
	if err != nil {
		return nil, nil, err
	}
	callers := map[string]int{}
	for i, key := range keys {
		callers[key] = i
	}
	take := func(key string) bool {
		caller := callers[key]
		return f.take(context.Background(), caller) == nil && f.end(caller) == nil
	}
	return take, func() { _ = f.gate.Close() }, nil
}

func openUsedFile(dir string) (fileTaker, error) {
	f, err := openFleet(context.Background(), "file:"+dir, usedAgents)
	if err != nil {
		return fileTaker{}, err
	}
	caller := 0
	take := func() (bool, error) {
		caller = (caller + 1) % usedAgents
		if err := f.take(context.Background(), caller); err != nil {
			return false, err
		}
		return true, f.end(caller)
	}
	return fileTaker{take: take, done: f.gate.Close}, nil
}

func openUsedRedis(ctx context.Context, server *redisrun.Server, callers int) (redisTaker, error) {
	f, err := openFleet(ctx, server.URL()+"?prefix="+prefixes.next(), callers)
	if err != nil {
		return redisTaker{}, err
	}
	take := func(ctx context.Context, caller int) (bool, error) {
		err := f.take(ctx, caller)
		if errors.Is(err, sluice.ErrStore) {
			return false, nil // on a busy machine Redis may be too late
		}
		return err == nil, err
	}
	return redisTaker{take, f.end, f.gate.Close}, nil
}

// openUsedMachine opens a separate gate, as another machine would.
func openUsedMachine(ctx context.Context, url string, number int) (machine, error) {
	f, err := openFleet(ctx, url, usedAgents)
	if err != nil {
		return machine{}, err
	}
	caller := number % usedAgents
	return machine{
		ticket: func(ctx context.Context) error { return errors.Join(f.take(ctx, caller), f.end(caller)) },
		close:  func() { _ = f.gate.Close() },
	}, nil
}

var contendedConfig = fmt.Sprintf(`
resources:
  api:
    limits:
      - {name: requests, size: %d/s, burst: 1}
`, contendedRate)

// openUsedContended opens a gate whose callers each have a name of their own.
func openUsedContended(ctx context.Context, url string, _ *ContendedRow) (contenderGate, error) {
	gate, err := openConfigured(ctx, url, contendedConfig)
	if err != nil {
		return contenderGate{}, err
	}
	acquire := func(ctx context.Context, caller int) (time.Time, func() error, error) {
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: resource, Agent: agentEach(caller)})
		if err != nil {
			return time.Time{}, nil, err
		}
		return ticket.GrantedAt(), func() error {
			_, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK, Status: 200})
			return errors.Join(err, ticket.Close())
		}, nil
	}
	return contenderGate{acquire, gate.Close}, nil
}

// openUsedCrowd opens a gate, and has agents take a ticket each.
func openUsedCrowd(ctx context.Context, url, config string, agents int) (func() error, error) {
	gate, err := openConfigured(ctx, url, config)
	if err != nil {
		return nil, err
	}
	for i := range agents {
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: resource, Agent: agentEach(i)})
		if err == nil {
			err = ticket.Close()
		}
		if err != nil {
			return nil, errors.Join(err, gate.Close())
		}
	}
	return gate.Close, nil
}
