package sluice

// Kill ends the heartbeats and nothing else, as when the process dies.
func (l *Lease) Kill() {
	if l.gate.fleet.remove(l) {
		l.stop()
		<-l.done
	}
}
