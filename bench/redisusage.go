package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// usage is the resources used up to a time.
type usage struct {
	server, client time.Duration // processor time
	calls          int           // commands sent to Redis, of the kinds that contenders use
	out            int           // bytes that Redis sent
}

func usageOf(ctx context.Context, server *redisrun.Server) (u usage, err error) {
	info, err := server.Do(ctx, "INFO", "commandstats")
	if err != nil {
		return u, err
	}
	if u.calls, err = callsIn(info); err != nil {
		return u, err
	}
	if info, err = server.Do(ctx, "INFO", "stats"); err != nil {
		return u, err
	}
	_, text, _ := strings.Cut(info, "\ntotal_net_output_bytes:")
	text, _, _ = strings.Cut(text, "\r")
	if u.out, err = strconv.Atoi(text); err != nil {
		return u, fmt.Errorf("INFO stats: %w", err)
	}
	u.client = cpuTime()
	u.server, err = server.CPU()
	return u, err
}

// callsIn sums the calls that come from clients. Redis also counts the commands that scripts run, under other names.
func callsIn(info string) (calls int, err error) {
	for line := range strings.Lines(info) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "cmdstat_fcall", "cmdstat_eval", "cmdstat_evalsha", "cmdstat_ping":
		default:
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(rest, "calls="), ",")
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("INFO commandstats: %s: %w", name, err)
		}
		calls += n
	}
	return calls, nil
}
