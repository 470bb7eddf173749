package deadletter

import (
	"fmt"
	"sync"
)

// Bounds on what waits to be written.
const (
	maxQueued      = 1000
	maxQueuedBytes = 32 << 20
)

// Keeper writes entries to a list in the background, so that whoever gives a request up does not wait for a disk. Any number of
// goroutines can use one.
type Keeper struct {
	// Config and Store are stated in entries that do not state them. Set them before the keeper is used.
	Config, Store Text

	list *List
	told func(e *Entry, dropped []string, err error)

	mu      sync.Mutex
	queue   []Entry
	bytes   int64
	writing bool
	idle    *sync.Cond
}

// NewKeeper returns a keeper for a list. told, if it is not nil, is called once for each entry, never concurrently: dropped names the
// older entries that made room for it, and err says why it was not kept.
func NewKeeper(list *List, told func(e *Entry, dropped []string, err error)) *Keeper {
	k := &Keeper{list: list, told: told}
	k.idle = sync.NewCond(&k.mu)
	return k
}

// Keep has an entry written. It does not wait. Where more come than can be written, what is too much is not kept.
func (k *Keeper) Keep(e Entry) {
	if e.Config == "" {
		e.Config = k.Config
	}
	if e.Store == "" {
		e.Store = k.Store
	}
	size := e.weight()
	k.mu.Lock()
	if len(k.queue) >= maxQueued || k.bytes+size > maxQueuedBytes {
		k.mu.Unlock()
		if k.told != nil {
			k.told(&e, nil, fmt.Errorf("more dead letters come than can be written"))
		}
		return
	}
	k.queue, k.bytes = append(k.queue, e), k.bytes+size
	if !k.writing {
		k.writing = true
		go k.write()
	}
	k.mu.Unlock()
}

// weight is about how much memory an entry takes.
func (e *Entry) weight() int64 {
	if e.Request == nil {
		return 0
	}
	return int64(len(e.Request.Body)) + 1024
}

// write writes what is queued, and ends.
func (k *Keeper) write() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.queue) > 0 {
		e := k.queue[0]
		k.queue[0] = Entry{}
		k.queue = k.queue[1:]
		k.mu.Unlock()
		id, dropped, err := k.list.Add(e)
		e.ID = id
		if k.told != nil {
			k.told(&e, dropped, err)
		}
		k.mu.Lock()
		k.bytes -= e.weight()
	}
	k.queue, k.writing = nil, false
	k.idle.Broadcast()
}

// Flush waits until everything is written that was kept before.
func (k *Keeper) Flush() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.writing {
		k.idle.Wait()
	}
}
