package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// join makes agents with a lease take it when they start, which may be some time before their first job.
func (s *sluice) join() {
	for _, a := range s.agents {
		if a.Joined {
			s.at(Epoch.Add(max(a.Start-a.Joins, 0)), func() { s.beat(a) })
		}
	}
}

// beat sends a heartbeat of a, and schedules the next one. It ignores the advice in the reply: the gate delays the
// requests of agents that do not follow it all the same.
func (s *sluice) beat(a *agent) {
	s.apply(store.Op{Kind: store.OpHeartbeat, Agent: a.Name, User: a.User, Class: uint8(a.Class), Machine: a.Machine})
	s.leases[a.index] = s.after(micros(sluiceHeartbeat), func() { s.beat(a) })
}

// left gives back the lease of an agent that has no work left.
func (s *sluice) left(a *agent) {
	if !a.Joined {
		return
	}
	if e := s.leases[a.index]; e != nil {
		s.cancel(e)
		s.leases[a.index] = nil
	}
	s.apply(store.Op{Kind: store.OpLeave, Agent: a.Name, User: a.User, Class: uint8(a.Class), Machine: a.Machine})
}

func micros(d time.Duration) store.Time { return store.Time(d.Microseconds()) }
