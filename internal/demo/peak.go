package demo

import "time"

// sample is the number of requests that had arrived at some time between before and after.
type sample struct {
	before, after time.Time
	arrived       int64
}

// peak finds the most requests that arrived within a second, from samples of a counter. It compares only samples that
// are at most a second apart for certain. So the true peak may be higher than most, but never lower.
type peak struct {
	last []sample // of the last second, oldest first
	most int64
}

func (p *peak) add(s sample) {
	for len(p.last) > 0 && s.after.Sub(p.last[0].before) > time.Second {
		p.last = p.last[1:]
	}
	if len(p.last) > 0 {
		p.most = max(p.most, s.arrived-p.last[0].arrived)
	}
	p.last = append(p.last, s)
}
