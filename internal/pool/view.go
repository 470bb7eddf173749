package pool

// View returns a copy of the pool to look at. Snapshot, History and Foresee move the pool that they are called on: they
// bring meters up to date and let tickets expire. On replicas nothing but a step may do that, so they look at a view.
// A view serves any number of looks, at times that do not go back.
func (p *Pool) View() *Pool { return p.Fork() }
