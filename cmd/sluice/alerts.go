package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/alert"
	"github.com/sluicehq/sluice/inspect"
)

// tellWithin is how long a command waits for a webhook at its end.
const tellWithin = 5 * time.Second

// tell makes the session post to the configured webhook when a budget is used up or a key is set aside. Only the
// process that notices it first posts.
func (s *session) tell(c *sluice.Config) error {
	if c.ReadOnly {
		return nil
	}
	hook, err := s.newHook(s.file.Alerts.Webhook)
	if err != nil {
		return err
	}
	s.hook.Store(hook)
	c.Alert = func(a inspect.Alert) {
		if hook := s.hook.Load(); hook != nil { // another configuration may name another webhook
			hook.Post(a)
		}
	}
	tell := c.Events
	c.Events = func(e inspect.Event) {
		if hook := s.hook.Load(); hook != nil && e.Kind == inspect.EventKeyAside {
			hook.Post(keyAlert{
				Time: e.Time, Event: e.Kind, Resource: e.Resource, Key: strings.TrimPrefix(e.Scope, "key="), Reason: e.Reason, Until: e.Until,
				Text: fmt.Sprintf("%s: a key is set aside until %s: %s", e.Resource, endText(e.Until), e.Reason),
			})
		}
		tell(e)
	}
	return nil
}

// keyAlert reports that a key is set aside.
type keyAlert struct {
	Time     time.Time  `json:"time"`
	Event    string     `json:"event"`
	Resource string     `json:"resource"`
	Key      string     `json:"key"` // its label
	Reason   string     `json:"reason"`
	Until    *time.Time `json:"until"`
	Text     string     `json:"text"` // the same in words
}

// newHook returns a poster for a webhook, or nil if there is none.
func (s *session) newHook(address string) (*alert.Poster, error) {
	if address == "" {
		return nil, nil
	}
	hook, err := alert.New(address, func(err error) {
		s.notes.Warn("an alert was not delivered: " + err.Error())
	})
	if err != nil {
		return nil, &failure{code: exitConfig, message: "alerts.webhook: " + err.Error(), hint: "docs/budgets.md describes alerts"}
	}
	return hook, nil
}

// endTelling delivers the remaining alerts, within tellWithin.
func (s *session) endTelling() { endHook(s.hook.Load()) }

func endHook(hook *alert.Poster) {
	if hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellWithin)
	defer cancel()
	_ = hook.Close(ctx) // failed deliveries have been reported
}
