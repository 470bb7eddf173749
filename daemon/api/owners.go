package api

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// maxOwned bounds the number of tickets with a known owner; the oldest are dropped first.
const maxOwned = 100_000

// owners records which agent each ticket was granted to, so that the token of one agent cannot end another's tickets.
type owners struct {
	mu  sync.Mutex
	all map[string]owner
	ids []string // ids, oldest first; some may be gone from all
}

type owner struct {
	agent string
	until time.Time // no ticket lives longer
}

func (o *owners) add(id, agent string, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[string]owner{}
	}
	o.all[id] = owner{agent, now.Add(store.MaxTTL)}
	o.ids = append(o.ids, id)
	for len(o.ids) > maxOwned || len(o.ids) > 0 && o.all[o.ids[0]].until.Before(now) {
		delete(o.all, o.ids[0])
		o.ids = o.ids[1:]
	}
}

func (o *owners) has(id, agent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[id].agent == agent
}
