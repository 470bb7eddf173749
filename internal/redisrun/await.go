package redisrun

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// await calls ask until it returns no error or a final one, or the time is up. The error includes the last one of
// ask.
func await(within time.Duration, what string, ask func() (final bool, err error)) error {
	end := time.Now().Add(within)
	for {
		final, err := ask()
		if err == nil || final {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s after %v: %w", what, within, err)
		}
		time.Sleep(pollEvery)
	}
}

// awaitAll is await for several servers at once.
func awaitAll(what string, servers []*Server, ask func(*Server) error) error {
	return await(settleWithin, what, func() (bool, error) {
		for _, s := range servers {
			if err := ask(s); err != nil {
				return false, err
			}
		}
		return false, nil
	})
}

// together runs a step for each server concurrently.
func together(servers []*Server, step func(int, *Server) error) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() { errs[i] = step(i, s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// stopAll stops the servers that were started.
func stopAll(servers []*Server) error {
	return together(servers, func(_ int, s *Server) error {
		if s == nil {
			return nil
		}
		return s.Stop()
	})
}

// field returns the value of a line "name:value", as in the output of INFO, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// want returns an error unless a line of INFO has the value.
func want(s *Server, info, name, value string) error {
	if got := field(info, name); got != value {
		return fmt.Errorf("%s says %s:%s, not %s", s.Addr(), name, got, value)
	}
	return nil
}

func itoa(n int) string { return strconv.Itoa(n) }
