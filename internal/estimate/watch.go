package estimate

// soon is the number of responses of a model after which its estimates are no longer watched: later ones change little.
const soon = 8

// Watch is a call that waits with an early estimate of its output.
type Watch struct {
	agent, model string
	output       int64
	fell         func()
}

// Early reports whether the estimated output n of a call may still fall to half: few responses of its model are known.
func (b *Book) Early(model string, n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.early(cut(model), n)
}

func (b *Book) early(model string, n int64) bool {
	m := b.models.get(key{model: model})
	return n > 0 && (m == nil || m.n < soon)
}

// Watch calls fell once when the estimated output of a call is at most half of n, which the call waits with. fell must
// not use the Book. It returns nil if the estimate is not [Book.Early]. The caller must end the watch with [Book.Forget].
func (b *Book) Watch(agent, model string, n int64, fell func()) *Watch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if model = cut(model); !b.early(model, n) {
		return nil
	}
	w := &Watch{agent: agent, model: model, output: n, fell: fell}
	if b.watches == nil {
		b.watches = map[*Watch]struct{}{}
	}
	b.watches[w] = struct{}{}
	b.tell(w)
	return w
}

// Forget ends a watch.
func (b *Book) Forget(w *Watch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watches, w)
}

// tell ends a watch whose estimate has fallen.
func (b *Book) tell(w *Watch) {
	if e := b.find(w.agent, w.model); e.n > 0 && e.high <= w.output/2 {
		delete(b.watches, w)
		w.fell()
	}
}
