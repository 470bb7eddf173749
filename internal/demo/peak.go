package demo

import "time"

// sample is the number of requests that had arrived at some moment between before and after.
type sample struct {
	before, after time.Time
	arrived       int64
}

// peak finds the most requests that arrived within a second, from samples of a counter. It compares only samples that
// are certainly no more than a second apart, so the true peak may be higher but never lower.
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
