package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon/api"
)

// Reloading configures how a daemon loads another configuration while it serves.
type Reloading struct {
	// Load reads the configuration. It returns an error if the configuration is wrong, or changes something that needs
	// a restart. Nil means that there is no file to read.
	Load func() (*config.File, error)
	// Open opens the gate of a configuration on the store that all gates of the daemon share; see
	// [sluice.OpenWithStore].
	Open func(ctx context.Context, f *config.File) (*sluice.Gate, error)
	// Base returns the transport of a configuration that Load returned. Nil means that the transport stays.
	Base func(f *config.File) http.RoundTripper
	// Follow is called with the configuration that is in force from now on, before the previous gate is closed. Nil
	// means no call.
	Follow func(f *config.File, gate *sluice.Gate)
}

// Reloaded describes what a reload has changed.
type Reloaded struct {
	Resources []string `json:"resources"` // the resources now
	Changed   []string `json:"changed"`   // a few words each
	Warnings  []string `json:"warnings"`  // what is not in effect yet, or not counted any more, and why
}

// maxEarlier bounds the number of earlier generations that still have requests.
const maxEarlier = 16

// reloadWithin bounds how long the store may take.
const reloadWithin = 30 * time.Second

// Reload reads the configuration and applies it as a whole or not at all. On an error the previous configuration stays
// in force, and the error says why. Running requests finish under the previous one; waiting requests wait under the new
// limits.
func (d *Daemon) Reload(ctx context.Context) (Reloaded, error) {
	var none Reloaded
	how := d.options.Reloading
	if how.Load == nil {
		return none, &api.Problem{Status: http.StatusConflict, Detail: "this daemon has no configuration file to read again", Hint: "start it with --config FILE"}
	}
	if !d.reloading.TryLock() {
		return none, &api.Problem{Status: http.StatusConflict, Detail: "another reload is under way", Hint: "try again when it is over"}
	}
	defer d.reloading.Unlock()
	if d.draining.Load() {
		return none, &api.Problem{Status: http.StatusServiceUnavailable, Detail: "the daemon is shutting down", Hint: "a restarted daemon reads the configuration"}
	}
	if d.earlier.Load() >= maxEarlier {
		return none, &api.Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("requests of %d earlier configurations are not over yet", maxEarlier), Hint: "try again when some are"}
	}
	ctx, cancel := context.WithTimeout(ctx, reloadWithin)
	defer cancel()
	before := d.now.Load()
	f, err := how.Load()
	if err != nil {
		return none, loadProblem(err)
	}
	done := compare(before.file, f)
	done.Warnings = append(done.Warnings, forgotten(before.file, f, time.Now())...)
	gate, err := how.Open(ctx, f)
	if err != nil {
		return none, d.putBack(ctx, before, openProblem(err))
	}
	next, err := d.newGeneration(f, gate, before)
	if err != nil {
		p := loadProblem(err)
		return none, d.putBack(ctx, before, errors.Join(p, gate.Close()))
	}
	done.Resources = resourcesOf(f)
	done.Warnings = append(done.Warnings, differing(ctx, gate)...)
	d.now.Store(next)
	if how.Follow != nil {
		how.Follow(f, gate)
	}
	d.retire(before)
	return done, nil
}

// putBack restores the pools after a failed reload: some may have changed before the failure.
func (d *Daemon) putBack(ctx context.Context, before *generation, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reloadWithin)
	defer cancel()
	gate, err := d.options.Reloading.Open(ctx, before.file)
	if err == nil {
		err = gate.Close()
	}
	if err != nil {
		d.log.Error("after a reload that failed, the limits could not be stated as they were; a reload or a restart does that", "reason", err.Error())
	}
	return why
}

// retire ends a generation after its last request.
func (d *Daemon) retire(g *generation) {
	d.earlier.Add(1)
	d.retiring.Go(func() {
		defer d.earlier.Add(-1)
		g.end()
		g.leave()
		g.proxy.DrainSockets(context.Background()) // clients that reconnect get the new configuration
		<-g.gone
		g.proxy.Settle()
		if err := g.gate.Close(); err != nil {
			d.log.Warn("the gate of an earlier configuration was not closed properly", "reason", err.Error())
		}
	})
}

// loadProblem describes what is wrong with a configuration, and where.
func loadProblem(err error) error {
	var p *api.Problem
	if errors.As(err, &p) {
		return p
	}
	p = &api.Problem{Status: http.StatusBadRequest, Detail: err.Error(), Hint: "nothing was changed; docs/configuration.md describes every field"}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		p.Hint = "nothing was changed; give the file back, or restart with another"
	}
	if at, ok := errors.AsType[*config.ParseError](err); ok {
		p.File, p.Line, p.Column, p.Field = at.File, at.Line, at.Column, at.Field
	}
	return p
}

// openProblem describes why a gate does not open although its configuration is valid.
func openProblem(err error) error {
	p := api.ProblemOf(err)
	if errors.Is(err, sluice.ErrInvalid) {
		p.Status = http.StatusConflict
		p.Hint = "nothing was changed; other processes have the resource open with other limits: end them or change them first, or restart all together"
	}
	return p
}

// reload serves POST /-/reload, for callers of the highest class.
func (d *Daemon) reload(w http.ResponseWriter, r *http.Request, g *generation) {
	who, err := g.identify(r)
	switch {
	case err != nil:
	case r.Method != http.MethodPost:
		err = api.NotAllowed(w, r, http.MethodPost)
	case who.Highest > 0:
		err = &api.Problem{Status: http.StatusForbidden, Detail: "a token of the highest class is needed to reload", Hint: "use such a token, or ask the operator of the gate"}
	}
	var done Reloaded
	if err == nil {
		// A client that goes away must not leave a reload half done.
		done, err = d.Reload(context.WithoutCancel(r.Context()))
	}
	if err != nil {
		d.refuse(w, r, api.ProblemOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(done) // an error means that the client is gone
}
