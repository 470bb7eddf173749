package scaler

import (
	"maps"
	"slices"
	"sync"

	"github.com/sluicehq/sluice"
)

// source is what the server speaks of: a gate and what is known of it. It is never changed, but for what was
// seen of the gate; another takes its place.
type source struct {
	gate    *sluice.Gate
	classes []string
	limits  map[string][]sluice.Limit
	named   []string // resources that a trigger without one may mean

	mu    sync.Mutex
	views map[string]*view
}

// Follow makes the server speak of another gate from now on, such as one with a new configuration. Classes and
// resources are as in [Options]. A trigger that names no resource means the only one of those named, which are all resources if
// there are none.
//
// Streams go on, and so do ramps: what is remembered of a trigger stays. A trigger that the new gate does not
// know the resource or class of gets an error from now on, and its stream ends with it. Calls that have begun
// on the gate before may still be looking at it; if it is closed under them they look at the new one.
func (s *Server) Follow(gate *sluice.Gate, classes []string, resources map[string]sluice.Resource, named ...string) {
	from := &source{gate: gate, classes: slices.Clone(classes), limits: map[string][]sluice.Limit{}, views: map[string]*view{}}
	for name, r := range resources {
		from.limits[name] = slices.Clone(r.Limits)
	}
	if from.named = slices.Clone(named); len(named) == 0 {
		from.named = slices.Sorted(maps.Keys(from.limits))
	}
	s.source.Store(from)
}

// highest is the class that an amber light does not hold.
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

// forget drops the view of a resource that there is not: names that callers make up must not pile up.
func (f *source) forget(resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.views, resource)
}
