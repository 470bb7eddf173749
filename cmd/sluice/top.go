package main

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/topview"
)

func newTop() *cobra.Command {
	once := false
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch resources, agents and the queue live",
		Long: `Top shows status and why live: each resource with its state, fullest limit, rate, pauses and a
light that holds classes back; the agents; and the queue. Keys: q quits, tab switches lists, arrows select, s sorts, / filters, p pauses
and r resumes the selected resource after a question, ? explains.

Without a terminal it prints once, as plain text.`,
		Example: "  sluice top\n  sluice top --once",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON(cmd) {
				return &failure{code: exitUsage, message: "top has no --json", hint: "sluice status --json and sluice why --json have the same"}
			}
			if out := cmd.OutOrStdout(); !once && canDraw(out) {
				return watch(cmd, out)
			}
			data, err := reading(cmd, nil, func(ctx context.Context, s *session) (topview.Data, error) { return (&watched{s: s}).Read(ctx) })
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), topview.Once(data, styleOf(cmd.OutOrStdout()), time.Now()))
			return written(err)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print once and exit")
	return cmd
}

// canDraw reports whether w is a terminal that supports drawing.
func canDraw(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
}

// watch shows the view until the user leaves it.
func watch(cmd *cobra.Command, out io.Writer) (err error) {
	s, err := openToLook(cmd)
	if err != nil {
		return err
	}
	again := func(open func(*cobra.Command, ...string) (*session, error)) func() (*session, error) {
		return func() (*session, error) {
			stderr := cmd.ErrOrStderr()
			cmd.SetErr(io.Discard) // its messages were already printed
			defer cmd.SetErr(stderr)
			return open(cmd)
		}
	}
	w := &watched{s: s, open: again(openToLook), create: again(openReadOnly)}
	defer func() { w.s.closing(&err) }()
	return fail(topview.Run(cmd.Context(), w, styleOf(out), out))
}

// The session looks for new pools this often, or after newRest times as long as that took: a Redis with many keys must
// not be searched all the time.
const (
	newEvery = 3 * time.Second
	newRest  = 50
)

// watched provides a session's data to the view.
type watched struct {
	mu     sync.Mutex // one read at a time
	s      *session
	open   func() (*session, error) // opens a new session, which sees new pools; nil if there is none
	create func() (*session, error) // opens a session whose store exists
	next   time.Time                // when to look for new pools
}

// renew opens a new session if there are pools that the current one does not know.
func (w *watched) renew(ctx context.Context) {
	began := time.Now()
	if w.open == nil || began.Before(w.next) {
		return
	}
	if !w.next.IsZero() && (w.s.empty || inside.Of(w.s.gate).NewOthers(ctx)) {
		_ = w.replace(w.open) // the old session reports the error
	}
	w.next = time.Now().Add(max(newEvery, newRest*time.Since(began)))
}

// replace opens another session in place of the current one.
func (w *watched) replace(open func() (*session, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	_ = w.s.close() // it has only read
	w.s = s
	return nil
}

// control returns a gate whose store exists, to pause or resume a resource.
func (w *watched) control() (*sluice.Gate, error) {
	if w.s.empty {
		if err := w.replace(w.create); err != nil {
			return nil, err
		}
	}
	return w.s.gate, nil
}

func (w *watched) Read(ctx context.Context) (topview.Data, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renew(ctx)
	data := topview.Data{Classes: w.s.classNames()}
	var err error
	if data.Status, err = w.s.gate.Status(ctx); err != nil {
		return data, err
	}
	for i := range data.Status.Resources {
		r := &data.Status.Resources[i]
		if r.AllWaiting() == 0 {
			continue // the usual case
		}
		list, err := w.s.gate.Why(ctx, r.Name)
		if err != nil {
			return data, err
		}
		for _, one := range list {
			data.Waiting = append(data.Waiting, topview.Waiting{Resource: r.Name, Waiting: one})
		}
	}
	return data, nil
}

func (w *watched) Pause(ctx context.Context, resource string, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	g, err := w.control()
	if err != nil {
		return err
	}
	return g.Pause(ctx, resource, d, "paused in sluice top")
}

func (w *watched) Resume(ctx context.Context, resource string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	g, err := w.control()
	if err != nil {
		return err
	}
	return g.Resume(ctx, resource)
}
