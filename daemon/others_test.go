package daemon

import (
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

func TestTroubleOfOthersIsToldOnceWhenItBeginsAndEnds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var told [][2]string
	known := troubles{}
	for _, state := range []string{"flowing", "queueing", "paused", "paused", "failing", "flowing", "idle"} {
		at = at.Add(time.Second)
		known.tell([]inspect.ResourceStatus{{Name: "beta", State: state}, {Name: "calm", State: "flowing"}}, at, func(e inspect.Event) {
			if e.Resource != "beta" || e.Kind != inspect.EventState || e.Time != at {
				t.Errorf("%+v", e)
			}
			told = append(told, [2]string{e.Was, e.State})
		})
	}
	if want := [][2]string{{"queueing", "paused"}, {"paused", "failing"}, {"failing", "flowing"}}; !reflect.DeepEqual(told, want) {
		t.Errorf("%v, want %v", told, want)
	}
}
