package history

import (
	"context"
	"time"

	"github.com/sluicehq/sluice"
)

// elsewhere counts sends that the store knows of and this daemon does not: those of other machines.
type elsewhere struct {
	sent map[key][2]int64 // by this machine, in this minute and the previous one
	at   int64
	over map[key]int64 // sends seen here beyond the store's count; the two clocks end their minutes at different times
}

// SetGate sets the gate whose store is asked what other machines send. Without a gate none is asked.
func (b *Book) SetGate(g *sluice.Gate) { b.gate.Store(g) }

// askWithin bounds how long the store may take.
const askWithin = 10 * time.Second

// ask finds out what other machines sent in a minute.
func (b *Book) ask(at int64) {
	g := b.gate.Load()
	if g == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	start := timeOf(at)
	rep, err := g.Report(ctx, start)
	if err != nil {
		return // the store keeps no records or is unreachable: the page says so
	}
	m := newMinute(at)
	b.mu.Lock()
	for i := range rep.Resources {
		r := &rep.Resources[i]
		b.surplus(m, key{resource: short(r.Name)}, r.Total.Minutes[start])
		for j := range r.Callers {
			k := key{agent: short(r.Callers[j].Name)}
			if k.agent != "" {
				b.surplus(m, k, r.Callers[j].Minutes[start])
			}
		}
	}
	if b.files == nil && !m.empty() {
		b.keepInMemory(m)
	}
	b.mu.Unlock()
	if b.files != nil {
		b.write.Lock()
		b.report(b.files.add(m))
		b.write.Unlock()
	}
}

// surplus counts sends of a minute that were not seen here.
func (b *Book) surplus(m *minute, k key, sent int64) {
	seen := b.other.seen(k, m.at)
	n := sent - seen - b.other.over[k]
	if b.other.over == nil || len(b.other.over) > maxAgents+maxResources {
		b.other.over = map[key]int64{}
	}
	if n <= 0 {
		b.other.over[k] = min(-n, seen)
		return
	}
	delete(b.other.over, k)
	if n > 2+seen/20 { // a smaller difference means that the minute ended a moment earlier there
		m.row(k).Elsewhere += n
	}
}

// note records a send by this machine.
func (o *elsewhere) note(k key, at int64) {
	o.turn(at)
	n := o.sent[k]
	n[0]++
	if _, known := o.sent[k]; known || len(o.sent) < maxAgents+maxResources {
		o.sent[k] = n
	}
}

func (o *elsewhere) turn(at int64) {
	if o.sent != nil && at == o.at {
		return
	}
	next := map[key][2]int64{}
	if at == o.at+1 {
		for k, n := range o.sent {
			if n[0] > 0 {
				next[k] = [2]int64{0, n[0]}
			}
		}
	}
	o.sent, o.at = next, at
}

// seen returns how many sends this machine made in a minute, this one or the previous one.
func (o *elsewhere) seen(k key, at int64) int64 {
	switch at {
	case o.at:
		return o.sent[k][0]
	case o.at - 1:
		return o.sent[k][1]
	}
	return 0
}
