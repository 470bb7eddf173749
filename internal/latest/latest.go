// Package latest remembers values of the latest keys, in bounded memory.
package latest

// Map holds the values of the keys that were put last. The zero value is empty and ready. It is not safe for
// concurrent use.
type Map[V any] struct {
	all  map[string]V
	keys []string // in a ring; once it is full, next is the oldest. Dropped keys stay until their turn.
	next int
}

// Put stores a value. A new key takes the place of the oldest one if the map holds most keys already.
func (m *Map[V]) Put(key string, v V, most int) {
	if m.all == nil {
		m.all = map[string]V{}
	}
	if _, known := m.all[key]; !known {
		if len(m.keys) < most {
			m.keys = append(m.keys, key)
		} else {
			delete(m.all, m.keys[m.next])
			m.keys[m.next] = key
			m.next = (m.next + 1) % len(m.keys)
		}
	}
	m.all[key] = v
}

// Get returns the value of a key, or the zero value.
func (m *Map[V]) Get(key string) V { return m.all[key] }

// Drop forgets a key.
func (m *Map[V]) Drop(key string) { delete(m.all, key) }

// Len returns the number of keys.
func (m *Map[V]) Len() int { return len(m.all) }
