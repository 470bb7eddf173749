package estimate

type key struct{ agent, model string }

// table has entries by key. It drops the least recently used.
type table struct {
	entries map[key]*entry
	ends    entry // next is the latest used, prev the one to drop
}

// get returns an entry and makes it the latest used.
func (t *table) get(k key) *entry {
	e := t.entries[k]
	if e != nil && t.ends.next != e {
		e.unlink()
		t.link(e)
	}
	return e
}

// add creates an entry, which must not exist, and drops one if there are too many.
func (t *table) add(k key, most int) *entry {
	if t.entries == nil {
		t.entries = map[key]*entry{}
		t.ends.next, t.ends.prev = &t.ends, &t.ends
	}
	e := &entry{}
	if len(t.entries) >= most {
		e = t.ends.prev
		e.unlink()
		delete(t.entries, e.key)
		*e = entry{}
	}
	e.key = k
	t.entries[k] = e
	t.link(e)
	return e
}

func (t *table) link(e *entry) {
	e.prev, e.next = &t.ends, t.ends.next
	e.next.prev, t.ends.next = e, e
}

func (e *entry) unlink() { e.prev.next, e.next.prev = e.next, e.prev }
