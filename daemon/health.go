package daemon

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

const (
	pulseEvery  = time.Second // how often the store is looked at for /healthz, however often it is asked
	pulseWithin = time.Second // after so long a store is busy, not broken
)

// pulse is what was last found out about the store.
type pulse struct {
	mu     sync.Mutex
	at     time.Time
	broken error
}

// health tells whether the daemon should go on, or be started anew: it is not well when its store is broken beyond what the daemon
// can mend. A store that is slow, full or out of reach is a matter of /readyz.
func (d *Daemon) health(w http.ResponseWriter, r *http.Request) {
	if err := d.brokenStore(r.Context()); err != nil {
		d.log.Error("the store is broken", "error", err)
		say(w, http.StatusServiceUnavailable, "the store is broken: "+err.Error())
		return
	}
	say(w, http.StatusOK, "ok")
}

func (d *Daemon) brokenStore(ctx context.Context) error {
	m, ok := store.As[store.Mortal](d.options.Store)
	if !ok {
		return nil
	}
	d.pulse.mu.Lock()
	defer d.pulse.mu.Unlock()
	if d.pulse.at.IsZero() || time.Since(d.pulse.at) >= pulseEvery {
		// One who asks and goes away does not decide what the next one is told.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pulseWithin)
		defer cancel()
		d.pulse.broken = m.Broken(ctx)
		d.pulse.at = time.Now()
	}
	return d.pulse.broken
}
