package sluice

import (
	"strings"
	"sync"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// addModels lists the models in a snapshot, and those that this gate was asked for under another name.
func (r *resource) addModels(s *inspect.ResourceStatus, snap *store.Snapshot) {
	for i := range snap.Queue {
		if model := snap.Queue[i].Model; model != "" {
			s.Model(model).Waiting++
		}
	}
	for i := range s.Limits {
		if model := modelOf(s.Limits[i].Scope); model != "" {
			s.Model(model)
		}
	}
	for i := range s.Gates {
		if model := modelOf(s.Gates[i].Scope); model != "" {
			s.Model(model)
		}
	}
	r.written.each(func(model, name string) { s.Model(model).Requested = name })
}

// modelOf returns the model of a scope such as user=u,model=m,tool=t.
func modelOf(scope string) string {
	_, model, _ := strings.Cut(","+scope, ",model=")
	for _, next := range []string{",tool=", ",key="} {
		model, _, _ = strings.Cut(model, next)
	}
	return model
}

// maxWritten bounds the models whose requested name a gate remembers.
const maxWritten = 64

// written holds the name that a client last used for each model. Stores know only the models.
type written struct {
	mu   sync.RWMutex
	last map[string]string
}

func (w *written) note(model, name string) {
	if name == "" || name == model || model == "" || len(name) > store.MaxName {
		return
	}
	w.mu.RLock()
	same := w.last[model] == name
	w.mu.RUnlock()
	if same {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]string{}
	}
	if _, there := w.last[model]; !there && len(w.last) >= maxWritten {
		for other := range w.last { // any one: it returns with the next request
			delete(w.last, other)
			break
		}
	}
	w.last[model] = name
}

func (w *written) each(f func(model, name string)) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for model, name := range w.last {
		f(model, name)
	}
}
