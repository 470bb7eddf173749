package pool

// View returns a copy of the pool for Snapshot, which moves the pool that it is called on: it brings meters up to date and
// lets tickets expire. On a replica nothing but a step may do that. A view serves any number of snapshots, at times that
// do not go back. History and Foresee need none: they change nothing.
func (p *Pool) View() *Pool { return p.Fork() }
