package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/daemon/api"
)

// fixedBy holds what the command line sets instead of the configuration, and what cannot change while running.
type fixedBy struct {
	listen, tls bool
	addresses   []string // the addresses listened on
}

// reloading returns how the daemon of the session reloads its configuration.
func (s *session) reloading(cmd *cobra.Command, fixed fixedBy, setGate func(*sluice.Gate)) daemon.Reloading {
	name := configName(cmd, nil)
	if name == "" {
		return daemon.Reloading{}
	}
	next := s.outlet.Load() // of the configuration that was loaded last
	return daemon.Reloading{
		Load: func() (*config.File, error) {
			f, err := config.Load(name)
			if err != nil {
				return nil, err
			}
			f.AddPresets()
			if _, err := f.GateConfig(time.Now()); err != nil {
				return nil, err
			}
			if next, err = s.outlet.Load().follow(f, s.notes); err != nil {
				return nil, err
			}
			return f, s.mayChange(cmd, f, fixed)
		},
		Base: func(*config.File) http.RoundTripper { return next.transport() },
		Open: func(ctx context.Context, f *config.File) (*sluice.Gate, error) {
			c, err := f.GateConfig(time.Now())
			if err != nil {
				return nil, err
			}
			c.Store, c.Events, c.Alert, c.Provider = s.config.Store, s.config.Events, s.config.Alert, f.ProviderOf
			return sluice.OpenWithStore(ctx, s.held, c)
		},
		Follow: func(f *config.File, gate *sluice.Gate) {
			setGate(gate)
			if old := s.outlet.Swap(next); old != next {
				old.transport().CloseIdleConnections()
				s.notes.Info("other certificates are trusted at providers than before")
			}
			s.follow(f, gate)
		},
	}
}

// mayChange refuses changes that need a restart. The whole configuration then stays as it was: half of it would match
// no file.
func (s *session) mayChange(cmd *cobra.Command, f *config.File, fixed fixedBy) error {
	stays := func(field, detail string) error {
		return &api.Problem{
			Status: http.StatusConflict, Field: field, Detail: field + ": " + detail,
			Hint: "nothing was changed; restart the daemon for that, or take this change back and reload",
		}
	}
	at, err := placeOf(cmd, f)
	if err != nil {
		return err
	}
	switch {
	case at.url != s.url:
		return stays("store", "the daemon cannot move to another store while it runs")
	case !fixed.listen && f.Listen != s.file.Listen:
		return stays("listen", "the daemon cannot listen elsewhere while it runs")
	case !fixed.tls && f.TLS != s.file.TLS:
		return stays("tls", "the daemon cannot switch to other certificate files while it runs; it does read these files again when they change")
	case len(f.Tokens) == 0 && len(s.file.Tokens) > 0: // a half-written file would look the same
		return stays("tokens", "the last token cannot be removed while the daemon runs: every client would get access")
	}
	hook, err := s.newHook(f.Alerts.Webhook)
	if err == nil {
		endHook(hook)
	}
	return err
}

// follow switches the session to another configuration. Only a reload calls it, one at a time.
func (s *session) follow(f *config.File, gate *sluice.Gate) {
	if f.Alerts.Webhook != s.file.Alerts.Webhook {
		if hook, err := s.newHook(f.Alerts.Webhook); err == nil { // it was tried before
			go endHook(s.hook.Swap(hook))
		}
	}
	s.file, s.gate = f, gate
	_ = s.rescale(f, gate) // the configuration was tried before
}

// reloadOnSignal reloads on SIGHUP until ctx ends, and reports the result. end waits for the last reload.
func (s *session) reloadOnSignal(ctx context.Context, d *daemon.Daemon) (end func()) {
	asked := make(chan os.Signal, 1)
	notifyReload(asked)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-asked:
				s.sayReloaded(d.Reload(context.WithoutCancel(ctx)))
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		cancel()
		<-done
	}
}

// sayReloaded reports in one line what a reload did.
func (s *session) sayReloaded(done daemon.Reloaded, err error) {
	if err != nil {
		p := api.ProblemOf(err)
		text := oneLine(p.Detail)
		if p.Hint != "" {
			text += " (" + oneLine(p.Hint) + ")"
		}
		s.notes.Error("not reloaded, the configuration before stays in force: " + text)
		return
	}
	text := "nothing has changed"
	if len(done.Changed) > 0 {
		text = strings.Join(done.Changed, "; ")
	}
	for _, w := range done.Warnings {
		text += "; warning: " + w
	}
	s.notes.Info("reloaded: " + oneLine(text))
}

func oneLine(text string) string { return strings.Join(strings.Fields(harmless(text)), " ") }
