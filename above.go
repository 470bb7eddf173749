package sluice

// AgentAbove reports whether the configuration names an agent and puts it into a higher class than the given one. Class
// 0 is the highest.
func (g inside) AgentAbove(agent string, class int) bool {
	k, named := g.settings.agents[agent]
	return named && int(k.class) < class
}

// UserAbove reports whether the configuration names an agent of the user in a higher class than the given one.
func (g inside) UserAbove(user string, class int) bool {
	if user == "" {
		return false
	}
	for _, k := range g.settings.agents {
		if k.user == user && int(k.class) < class {
			return true
		}
	}
	return false
}
