package scaler

import (
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

	mu    sync.Mutex
	views map[string]*view
}

// Follow makes the server speak of another gate from now on, such as one with a new configuration. Classes and
// resources are as in [Options].
//
// Streams go on, and so do ramps: what is remembered of a trigger stays. A trigger that the new gate does not
// know the resource or class of gets an error from now on, and its stream ends with it. Calls that have begun
// on the gate before may still be looking at it; if it is closed under them they look at the new one.
func (s *Server) Follow(gate *sluice.Gate, classes []string, resources map[string]sluice.Resource) {
	from := &source{gate: gate, classes: slices.Clone(classes), limits: map[string][]sluice.Limit{}, views: map[string]*view{}}
	for name, r := range resources {
		from.limits[name] = slices.Clone(r.Limits)
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
