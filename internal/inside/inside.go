// Package inside is the side of a gate that only this module sees: what proxy, daemon and command line need of it, and other programs
// do not.
package inside

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside/hook"
)

// Gate is that side. Its methods are in package sluice, with their comments.
type Gate interface {
	// Who may speak for whom.
	AgentAbove(agent string, class int) bool
	UserAbove(user string, class int) bool
	Highest(agent, class string) bool
	Leased(ctx context.Context, agent string) (m sluice.JoinRequest, ok bool, err error)
	CheckIn(ctx context.Context, m sluice.JoinRequest) (inspect.CheckInResult, error)
	WorksForEvery() time.Duration

	// What is known of a resource.
	Observes(resource string) bool
	HasEnded(ctx context.Context, t sluice.Ticket) (bool, error)
	Levels(ctx context.Context, resource string) (limits []inspect.LimitStatus, callers int, err error)
	FailingFor(resource string) time.Duration
	TellsKeys(resource string) bool
	SetKeyAside(ctx context.Context, resource, label string, d time.Duration, reason string) error
	WatchStates(ctx context.Context)

	// Pools that the configuration does not name.
	Uses(pool string) bool
	NewOthers(ctx context.Context) bool
	Others() map[string][]sluice.Limit
	Skipped() []string

	// Money and models.
	BudgetState(ctx context.Context, agent, user string) (inspect.BudgetState, error)
	CountNowhere(resource string, list []sluice.Amount) (nowhere, counted []string)
	ListPrice(resource, model string, usage []sluice.Amount) (micros int64, ok bool)
	RouteOn(ctx context.Context, resource, task string, req sluice.Request) (inspect.Route, error)
	CheaperOn(ctx context.Context, req sluice.Request) (string, error)
}

// Of returns the inner side of a gate.
func Of(g *sluice.Gate) Gate { return hook.Of(g).(Gate) }
