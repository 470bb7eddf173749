package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// join lets agents that hold a lease take it when they are started, which may be
// some time before there is anything to do.
func (s *sluice) join() {
	for _, a := range s.agents {
		if a.Joined {
			s.at(Epoch.Add(max(a.Start-a.Joins, 0)), func() { s.beat(a) })
		}
	}
}

// beat keeps a's lease. What comes back is advice for the agent; the requests
// of those who do not follow it are held just as well.
func (s *sluice) beat(a *agent) {
	s.apply(store.Op{Kind: store.OpHeartbeat, Agent: a.Name, User: a.User, Class: uint8(a.Class), Machine: a.Machine})
	s.leases[a.index] = s.after(micros(sluiceHeartbeat), func() { s.beat(a) })
}

// left gives the lease of an agent back that has nothing to do any more.
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
