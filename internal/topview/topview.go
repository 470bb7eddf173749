// Package topview is the live view of a gate in a terminal: resources, agents, and waiting requests.
//
// The model is pure: time and data arrive as messages. Commands access the store, concurrently with the loop that
// draws.
package topview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// Source provides the data of the view and carries out its actions.
type Source interface {
	Read(ctx context.Context) (Data, error)
	Pause(ctx context.Context, resource string, d time.Duration) error
	Resume(ctx context.Context, resource string) error
}

// Data is the state at one moment.
type Data struct {
	Status  inspect.Status
	Waiting []Waiting
	Classes []string // highest first
}

// Waiting is a request in the queue of a resource.
type Waiting struct {
	Resource string
	inspect.Waiting
}

const (
	refresh   = 500 * time.Millisecond
	patience  = 10 * time.Second // for a store that does not respond
	staleFrom = 3 * time.Second
)

// Run shows the view until the user leaves it. It restores the terminal, also after a panic.
func Run(ctx context.Context, src Source, style show.Style, out io.Writer) error {
	return run(ctx, New(ctx, src, style, time.Now()), tea.WithOutput(out))
}

func run(ctx context.Context, m tea.Model, options ...tea.ProgramOption) error {
	_, err := tea.NewProgram(m, append(options, tea.WithContext(ctx))...).Run()
	switch {
	case errors.Is(err, tea.ErrInterrupted), ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled):
		return nil // ended from outside
	case err != nil:
		return fmt.Errorf("the view ended: %w", err)
	}
	return nil
}

// Messages for the model, besides keys and sizes.
type (
	tickMsg time.Time
	dataMsg struct {
		at   time.Time
		data Data
		err  error
	}
	doneMsg struct { // the result of a pause or resume
		what string
		err  error
	}
)

func tick() tea.Cmd {
	return tea.Tick(refresh, func(t time.Time) tea.Msg { return tickMsg(t) })
}

func (m Model) read() tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		data, err := m.src.Read(ctx)
		return dataMsg{time.Now(), data, err}
	}
}

// do carries out a confirmed action.
func (m Model) do(a action) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		if a.resume {
			return doneMsg{a.resource + " resumed", m.src.Resume(ctx, a.resource)}
		}
		return doneMsg{fmt.Sprintf("%s paused for %s", a.resource, show.Span(a.length())), m.src.Pause(ctx, a.resource, a.length())}
	}
}
