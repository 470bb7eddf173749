package pool

// View returns a copy of the pool for Snapshot at a time later than the latest step, at which tickets may expire. On a
// replica nothing but a step may do that. A view serves any number of snapshots, at times that do not go back. History and
// Foresee need none: they change nothing.
func (p *Pool) View() *Pool { return p.Fork() }
