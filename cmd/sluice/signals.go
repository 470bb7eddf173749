package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// caught is the signal that ended a command, as the cause of its context.
type caught struct{ signal os.Signal }

func (c *caught) Error() string { return c.signal.String() }

// failure returns the failure of a command that a signal interrupted.
func (c *caught) failure(doing string) error {
	f := &failure{code: exitInternal, message: fmt.Sprintf("%s while %s", c, doing), hint: "nothing was taken"}
	if n, ok := c.signal.(syscall.Signal); ok {
		f.code = 128 + int(n)
	}
	return f
}

// withSignals returns a context that an interrupt or SIGTERM ends.
func withSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals) // a second one ends the program at once
			cancel(&caught{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// signalOf returns the signal that ended a context, or nil if none did.
func signalOf(ctx context.Context) *caught {
	c, _ := errors.AsType[*caught](context.Cause(ctx))
	return c
}
