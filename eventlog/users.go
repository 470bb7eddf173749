package eventlog

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/latest"
)

// maxUsers bounds the agents in the result of Users. The agents that came last are kept.
const maxUsers = 4096

// Users returns a function that gives the user for whom an agent last sent or was refused on this machine since a moment,
// or an empty name. It leaves out events of other stores than the given ones, as [IsOf] says.
func Users(dir string, since time.Time, stores ...string) (userOf func(agent string) string, err error) {
	var last latest.Map[string]
	err = ReadKinds(dir, since, []string{inspect.EventSend, inspect.EventRefused}, func(e inspect.Event) bool {
		if e.Agent != "" && IsOf(&e, stores) {
			last.Put(e.Agent, e.User, maxUsers)
		}
		return true
	})
	return last.Get, err
}
