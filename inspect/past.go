package inspect

// Past is what went past the gate: connections of commands under sluice run.
type Past struct {
	// Watched is set if such a command made a call or a connection at all.
	Watched bool
	// Of counts the connections, by resource and host.
	Of map[string]map[string]int64
}

// AddTo adds the counts to the resources of a status.
func (p *Past) AddTo(s *Status) {
	if !p.Watched {
		return
	}
	for i := range s.Resources {
		r := &s.Resources[i]
		r.PastGate, r.PastHosts = new(int64), map[string]int64{}
		for host, n := range p.Of[ResourceOf(r.Name)] {
			r.PastHosts[host] = n
			*r.PastGate += n
		}
	}
}
