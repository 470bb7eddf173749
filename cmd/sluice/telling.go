package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/alert"
)

// tellWithin is how long a command waits, at its end, for a webhook.
const tellWithin = 5 * time.Second

// tell has the configured webhook told of budgets that are used up: whoever notices it first is the only one to tell.
func (s *session) tell(c *sluice.Config) error {
	address := s.file.Alerts.Webhook
	if address == "" || c.Look {
		return nil
	}
	hook, err := alert.New(address, func(err error) {
		fmt.Fprintf(s.stderr, "warning: an alert was not delivered: %s\n", harmless(err.Error()))
	})
	if err != nil {
		return &failure{code: exitConfig, message: "alerts.webhook: " + err.Error(), hint: "docs/budgets.md tells what is posted"}
	}
	s.hook = hook
	c.Alert = func(a sluice.Alert) { hook.Post(a) }
	return nil
}

// endTelling delivers what is left, if that is possible soon.
func (s *session) endTelling() {
	if s.hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	_ = s.hook.Close(ctx) // what was not delivered has been said
}
