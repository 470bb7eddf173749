package pool

import "github.com/sluicehq/sluice/store"

// Foresee sets the results of a session's acquires as Apply would at time now if they came one by one and could not wait,
// up to the first that would be granted. It tries them on a copy, so nothing changes.
func (p *Pool) Foresee(now store.Time, session uint64, ops []store.Op) error {
	c := p.Fork()
	for i := range ops {
		one := []store.Op{ops[i]}
		one[0].ID.Session, one[0].Wait = session, 0
		c.Apply(now, one)
		r := &one[0].Result
		if r.Reason.Code == store.CodePace && c.queue.Len() > 0 {
			r.Reason.At = 0 // what the requests ahead do may end the pace sooner
		}
		if ops[i].Result = *r; r.State == store.Granted {
			return nil
		}
	}
	return nil
}
