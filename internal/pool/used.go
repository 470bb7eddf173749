package pool

import "github.com/sluicehq/sluice/store"

// Used reports whether a session that of accepts is a member that reports, or has waiting or granted tickets.
func (p *Pool) Used(now store.Time, of func(session uint64) bool) bool {
	for i := p.firstMember; i != 0; i = p.members.At(i).next {
		if m := p.members.At(i); m.silentFrom() > int64(now) && of(p.sessions.At(m.session).id) {
			return true
		}
	}
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); t.state != 0 && t.state != stateSpent && of(t.id.Session) {
			return true
		}
	}
	return false
}
