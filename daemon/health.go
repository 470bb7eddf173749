package daemon

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

const (
	pulseEvery  = time.Second // /healthz checks the store at most this often
	pulseWithin = time.Second // a store that takes longer is busy, not broken
)

// pulse is the result of the last check of the store.
type pulse struct {
	mu     sync.Mutex
	at     time.Time
	broken error
}

// health serves /healthz: whether the daemon should keep running or be restarted. It fails when the store is broken and
// the daemon cannot repair it. A store that is slow, full or unreachable makes /readyz fail instead.
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
		// The result is shared, so a caller that goes away must not cancel the check.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pulseWithin)
		defer cancel()
		d.pulse.broken = m.Broken(ctx)
		d.pulse.at = time.Now()
	}
	return d.pulse.broken
}
