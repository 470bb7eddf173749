package eventlog

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// maxModels is how many models of a resource Requested names: those that were sent for last.
const maxModels = 64

// Requested returns, by resource and model, the name that a client of this machine wrote last for it since a moment. Models that
// clients called by their own name are not in it.
func Requested(dir string, since time.Time) (map[string]map[string]string, error) {
	last := map[string]map[string]inspect.Event{}
	_, err := read(dir, since, [][]byte{[]byte(`"requested":"`)}, func(e inspect.Event) bool {
		if e.Requested == "" || e.Model == "" {
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
