package sluice

// Kill ends the heartbeats and nothing else, as when the process dies.
func (l *Lease) Kill() {
	if was, _ := l.gate.fleet.remove(l); was {
		l.stop()
		<-l.done
	}
}
