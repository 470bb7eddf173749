package eventlog

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// maxModels bounds the models per resource in the result of Requested. The most recently sent ones are kept.
const maxModels = 64

// Requested returns, by resource and model, the name that a client of this machine last used for the model since a
// moment. It leaves out models that clients called by their own name, and events of other stores than the given ones, as
// [IsOf] says.
func Requested(dir string, since time.Time, stores ...string) (map[string]map[string]string, error) {
	last := map[string]map[string]inspect.Event{}
	_, err := read(dir, since, [][]byte{[]byte(`"requested":"`)}, func(e inspect.Event) bool {
		if e.Requested == "" || e.Model == "" || !IsOf(&e, stores) {
			return true
		}
		models := last[e.Resource]
		if models == nil {
			models = map[string]inspect.Event{}
			last[e.Resource] = models
		}
		models[e.Model] = e
		if len(models) > maxModels {
			delete(models, oldest(models))
		}
		return true
	})
	names := map[string]map[string]string{}
	for resource, models := range last {
		names[resource] = map[string]string{}
		for model, e := range models {
			names[resource][model] = e.Requested
		}
	}
	return names, err
}

func oldest(models map[string]inspect.Event) (first string) {
	for model, e := range models {
		if first == "" || e.Time.Before(models[first].Time) {
			first = model
		}
	}
	return first
}
