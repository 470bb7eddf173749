package deadletter

import (
	"fmt"
	"sync"
)

// Bounds on the entries waiting to be written.
const (
	maxQueued      = 1000
	maxQueuedBytes = 32 << 20
)

// Keeper writes entries to a list in the background, so that callers do not wait for the disk. It is safe for
// concurrent use.
type Keeper struct {
	// Config and Store are used for entries that do not state them. Set them before using the keeper.
	Config, Store Text

	list *List
	told func(e *Entry, dropped []string, err error)

	mu      sync.Mutex
	queue   []Entry
	bytes   int64
	writing bool
	idle    *sync.Cond
}

// NewKeeper returns a keeper for a list. If told is not nil, it is called once for each entry: dropped names the older
// entries that made room for it, and err says why it was not kept. Calls come from the keeper's goroutine, except those
// for entries that found the queue full, which come from Keep.
func NewKeeper(list *List, told func(e *Entry, dropped []string, err error)) *Keeper {
	k := &Keeper{list: list, told: told}
	k.idle = sync.NewCond(&k.mu)
	return k
}

// Keep queues an entry for writing and returns at once. If the queue is full, the entry is not kept, and told gets the
// error.
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

// weight returns approximately how much memory an entry takes, in bytes.
func (e *Entry) weight() int64 {
	if e.Request == nil {
		return 0
	}
	return int64(len(e.Request.Body)) + 1024
}

// write writes the queued entries and returns.
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

// Flush waits until all entries queued so far are written.
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
