package scaler

import (
	"maps"
	"slices"
	"sync"

	"github.com/sluicehq/sluice"
)

// source is a gate with its classes and limits. Apart from its views it never changes; Follow replaces it.
type source struct {
	gate    *sluice.Gate
	classes []string
	model   func(resource, model string) string // as in [Options]
	limits  map[string][]sluice.Limit
	named   []string // resources that a trigger without one may mean

	mu    sync.Mutex
	views map[string]*view
}

// Follow makes the server use another gate from now on, such as one with a new configuration. Classes and resources are
// as in [Options]. A trigger that names no resource means the only one in named, or the only one of all resources if
// named is empty.
//
// Streams and ramps continue, because the state of triggers stays. If the new gate does not know a trigger's resource
// or class, the trigger gets an error from now on, and its stream ends. Calls that have begun may still read the
// previous gate; if it closes under them, they read the new one.
func (s *Server) Follow(gate *sluice.Gate, classes []string, resources map[string]sluice.Resource, named ...string) {
	from := &source{gate: gate, classes: slices.Clone(classes), model: s.model, limits: map[string][]sluice.Limit{}, views: map[string]*view{}}
	for name, r := range resources {
		from.limits[name] = slices.Clone(r.Limits)
	}
	if from.named = slices.Clone(named); len(named) == 0 {
		from.named = slices.Sorted(maps.Keys(from.limits))
	}
	s.source.Store(from)
}

// highest returns the class that an amber light does not hold.
func (f *source) highest() string {
	if len(f.classes) == 0 {
		return ""
	}
	return f.classes[0]
}

func (f *source) view(resource string) *view {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.views[resource]
	if v == nil {
		v = &view{lock: make(chan struct{}, 1)}
		f.views[resource] = v
	}
	return v
}

// forget drops the view of an unknown resource, so that invented names do not pile up.
func (f *source) forget(resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.views, resource)
}
