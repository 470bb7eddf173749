package order

import (
	"encoding/binary"

	"github.com/sluicehq/sluice/internal/flat"
)

// The methods below expose the records of a queue to stores that keep them outside this process's memory.

// Counts returns the record that a queue has exactly once.
func (q *Queue) Counts() any { return q.counts }

// Slabs returns the slabs of the queue by their stored names.
func (q *Queue) Slabs() map[string]flat.Numbered {
	return map[string]flat.Numbered{
		"qwaiters": &q.waiters, "qflows": &q.flows, "qmembers": &q.members, "qlanes": &q.lanes, "qdomains": &q.domains,
		"qspots": &q.spots, "tnodes": q.tree.Nodes(),
	}
}

// Widest returns the number of classes that the queue has agents in, counted from class 0 up to the lowest one.
func (q *Queue) Widest() (n int) {
	for i := int32(1); i < q.members.End(); i++ {
		if m := q.members.At(i); m.agent != 0 {
			n = max(n, int(m.class)+1)
		}
	}
	return n
}

// Keyed is an index that a store outside this process keeps as keys and values instead of hashes.
type Keyed struct {
	Each func(func(key []byte, rec int32))
	Fill func() // Fill enters all records
}

// Indexes returns the indexes by the prefix of their stored keys.
func (q *Queue) Indexes() map[string]Keyed {
	return map[string]Keyed{
		"id": keyed(&q.flowIx, &q.flows, func(f *flow) uint32 { return f.key.hash() }, func(f *flow) []byte {
			k := f.key
			return words(k.Lane.Model, k.Lane.Key, int32(k.Lane.Shared), k.Agent, k.User, k.Tool, int32(k.Own), int32(k.Class))
		}),
		"ie": keyed(&q.membIx, &q.members, func(m *partAgent) uint32 { return memberHash(m.lane, m.class, m.agent) }, func(m *partAgent) []byte {
			return append(append(words(m.lane), m.class), words(m.agent)...)
		}),
		"if": keyed(&q.laneIx, &q.lanes, func(l *lane) uint32 { return l.key.hash() }, func(l *lane) []byte {
			return words(l.key.Model, l.key.Key, int32(l.key.Shared))
		}),
		"ig": keyed(&q.domIx, &q.domains, func(d *domain) uint32 { return onHash(d.on) }, func(d *domain) []byte { return words(d.on) }),
		"ih": keyed(&q.spotIx, &q.spots, func(s *spot) uint32 { return onHash(s.on) }, func(s *spot) []byte { return words(s.on) }),
	}
}

func keyed[T any](ix *flat.Index, slab *flat.Slab[T], hash func(*T) uint32, key func(*T) []byte) Keyed {
	each := func(f func([]byte, int32)) {
		free := map[int32]bool{}
		for _, i := range slab.Unused() {
			free[i] = true
		}
		for i := int32(1); i < slab.End(); i++ {
			if !free[i] {
				f(key(slab.At(i)), i)
			}
		}
	}
	return Keyed{each, func() { each(func(_ []byte, i int32) { ix.Add(hash(slab.At(i)), i) }) }}
}

func words(list ...int32) (key []byte) {
	for _, n := range list {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	return key
}
