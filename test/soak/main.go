// Soak tests a real daemon with the load of a fleet: agents that send heartbeats, and tickets at a steady rate over the
// HTTP API. It starts with a small baseline, then runs the full load. It prints the duration of calls next to the
// baseline, and exits with 1 if a check fails:
//
//   - every due ticket was granted, answered and closed, and the gate has counted each once;
//   - afterwards no request is in flight or waiting, and every agent has its lease;
//   - the clients never saw more grants in a second or a minute than the limits allow;
//   - the daemon's memory did not grow from the second third of the load to the last;
//   - in a load of 10 minutes or more, neither did its descriptors, goroutines, files, Redis keys, or the duration of calls.
//
// A call's duration starts when the call is due, not when a client is free to make it. So a daemon that stalls shows in
// all calls that it delays.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	exitOK          = 0
	exitLost        = 1
	exitFailed      = 2   // the soak itself failed
	exitInterrupted = 130 // ended by a signal
)

// options are the command line options.
type options struct {
	sluice  string
	store   string
	stores  []string // kinds of stores to create; "": the URL in store
	agents  int
	tickets int
	every   time.Duration
	load    time.Duration
	idle    time.Duration
	conns   int
	cores   int
	json    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := mainCode(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func mainCode(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "error:", err)
		return exitFailed
	}
	code := exitOK
	for _, kind := range o.stores {
		r, err := soak(ctx, o, kind, stderr)
		switch {
		case err != nil && ctx.Err() != nil:
			fmt.Fprintln(stderr, "soak: interrupted")
			return exitInterrupted
		case err != nil:
			fmt.Fprintln(stderr, "error:", err)
			return exitFailed
		}
		if o.json {
			err = json.NewEncoder(stdout).Encode(r)
		} else {
			err = r.print(stdout)
		}
		if err != nil {
			fmt.Fprintln(stderr, "error:", err)
			return exitFailed
		}
		if !r.OK {
			code = exitLost
		}
	}
	return code
}

// Bounds for the options. A driver that cannot keep up would only measure itself.
const (
	maxAgents  = 1_000_000
	maxTickets = 50_000
	maxConns   = 4096
)

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.sluice, "sluice", "bin/sluice", "the `program` to serve with")
	f.StringVar(&o.store, "store", "", "`URL` of the store, instead of those of --stores")
	stores := f.String("stores", "", "`LIST` of stores to make, one after the other: file, redis, daemon, memory, or all (default file)")
	f.IntVar(&o.agents, "agents", 10_000, "how many agents send heartbeats")
	f.IntVar(&o.tickets, "tickets", 1000, "how many tickets are asked for in a second")
	f.DurationVar(&o.every, "every", 30*time.Second, "how often each agent sends a heartbeat")
	f.DurationVar(&o.load, "for", 3*time.Minute, "how long the load lasts")
	f.DurationVar(&o.idle, "idle", 20*time.Second, "how long the baseline lasts")
	f.IntVar(&o.conns, "connections", 256, "how many connections there are at most")
	f.IntVar(&o.cores, "cores", 2, "how many cores the daemon may use")
	f.BoolVar(&o.json, "json", false, "print the figures as JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag", f.Arg(0))
	case o.agents < 1 || o.agents > maxAgents:
		return o, fmt.Errorf("--agents is 1 to %d", maxAgents)
	case o.tickets < 1 || o.tickets > maxTickets:
		return o, fmt.Errorf("--tickets is 1 to %d", maxTickets)
	case o.conns < 2 || o.conns > maxConns:
		return o, fmt.Errorf("--connections is 2 to %d", maxConns)
	case o.cores < 1:
		return o, errors.New("--cores is 1 or more")
	case o.load < time.Second || o.load > 24*time.Hour:
		return o, errors.New("--for is 1s to 24h")
	case o.idle < time.Second || o.idle > time.Hour:
		return o, errors.New("--idle is 1s to 1h")
	case o.every < time.Second || o.every > 4*time.Minute:
		return o, errors.New("--every is 1s to 4m: a lease ends after 5m")
	}
	var named []string
	if *stores != "" {
		named = strings.Split(*stores, ",")
	}
	var err error
	if o.stores, err = choose(o, named); err != nil {
		return o, err
	}
	if o.every > o.load {
		o.every = o.load // each agent must send at least one heartbeat
	}
	return o, nil
}
