package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// maxNames bounds the names in one file. Rows with further names are counted under Other.
const maxNames = 4096

// names numbers the names of one file in the order of their first use.
type names struct {
	byName map[string]uint64
	list   []string
	fresh  []string // not written yet
}

func newNames() *names { return &names{byName: map[string]uint64{}} }

func (n *names) add(name string) {
	n.byName[name] = uint64(len(n.list))
	n.list = append(n.list, name)
}

// fits reports whether there is room for all names of a row.
func (n *names) fits(k key, r *row) bool {
	if len(n.list)+3+maxClasses < maxNames {
		return true
	}
	all := true
	for _, name := range [...]string{k.resource, k.model, k.agent} {
		_, known := n.byName[name]
		all = all && (known || name == "")
	}
	for class := range r.classes {
		_, known := n.byName[class]
		all = all && known
	}
	return all
}

// large stands in for names.id when sizes are estimated. It returns a number with the longest encoding.
func large(string) uint64 { return maxNames }

func (n *names) id(name string) uint64 {
	id, known := n.byName[name]
	if !known {
		n.add(name)
		n.fresh = append(n.fresh, name)
		id = n.byName[name]
	}
	return id
}

// maxRow is the maximum size of a row in bytes.
const maxRow = 3*binary.MaxVarintLen64 + (15+latencyBuckets+1)*binary.MaxVarintLen64 + (2*maxClasses+1)*binary.MaxVarintLen64

// shareOf is how many bytes of a minute each kind of row may take, in addition to one row of Other. Names that are
// new to the file are not included.
var shareOf = [kinds]int{2 << 10, 2 << 10, MaxMinute - 4<<10 - kinds*(maxRow+binary.MaxVarintLen64) - binary.MaxVarintLen64}

// encode writes a minute: its number, names that are new to the file, and the rows of each kind. It adds up rows
// that do not fit.
func encode(m *minute, n *names) []byte {
	n.id(Other)
	var body []byte
	for kind, rows := range m.rows {
		keys := slices.SortedFunc(maps.Keys(rows), func(a, b key) int {
			return cmp.Or(cmp.Compare(rows[b].weight(), rows[a].weight()), cmp.Compare(a.resource, b.resource), cmp.Compare(a.model, b.model), cmp.Compare(a.agent, b.agent))
		})
		var part []byte
		count, rest, others := 0, row{}, others[kind]
		for _, k := range keys {
			tight := len(part)+maxRow > shareOf[kind] && len(part)+len(encodeRow(nil, k, rows[k], large)) > shareOf[kind]
			if k == others || tight || !n.fits(k, rows[k]) {
				rest.add(&rows[k].Figures)
				rest.classes = nil // their names may not fit
				continue
			}
			part = encodeRow(part, k, rows[k], n.id)
			count++
		}
		if rest.Figures != (Figures{}) {
			part = encodeRow(part, others, &rest, n.id)
			count++
		}
		body = binary.AppendUvarint(body, uint64(count))
		body = append(body, part...)
	}
	head := binary.AppendUvarint(nil, uint64(m.at))
	head = binary.AppendUvarint(head, uint64(len(n.fresh)))
	for _, name := range n.fresh {
		head = binary.AppendUvarint(head, uint64(len(name)))
		head = append(head, name...)
	}
	return append(head, body...)
}

// Bits of a row's mask, after those of its fields.
const (
	hasSlow    = 1 << 15
	hasClasses = 1 << 16
)

func encodeRow(to []byte, k key, r *row, id func(string) uint64) []byte {
	switch k.kind() {
	case ofAgent:
		to = binary.AppendUvarint(to, id(k.agent))
	case ofModel:
		to = binary.AppendUvarint(binary.AppendUvarint(to, id(k.resource)), id(k.model))
	default:
		to = binary.AppendUvarint(to, id(k.resource))
	}
	mask, fields := uint64(0), r.fields()
	for i, f := range fields {
		if *f != 0 {
			mask |= 1 << i
		}
	}
	slow := uint64(0)
	for i, c := range r.Slow {
		if c != 0 {
			slow |= 1 << i
		}
	}
	if slow != 0 && k.kind() != ofAgent { // for agents the mean is enough
		mask |= hasSlow
	}
	if len(r.classes) > 0 {
		mask |= hasClasses
	}
	to = binary.AppendUvarint(to, mask)
	for _, f := range fields {
		if *f != 0 {
			to = binary.AppendVarint(to, *f)
		}
	}
	if mask&hasSlow != 0 {
		to = binary.AppendUvarint(to, slow)
		for _, c := range r.Slow {
			if c != 0 {
				to = binary.AppendUvarint(to, uint64(c))
			}
		}
	}
	if mask&hasClasses != 0 {
		to = binary.AppendUvarint(to, uint64(len(r.classes)))
		for _, class := range slices.Sorted(maps.Keys(r.classes)) {
			to = binary.AppendVarint(binary.AppendUvarint(to, id(class)), r.classes[class])
		}
	}
	return to
}

// errDamaged means that the bytes are not a minute.
var errDamaged = errors.New("it is damaged")

// decoder reads numbers. After a failure it returns only zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text() string {
	n := d.number()
	if n > maxName || n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) name(n *names) string {
	id := d.number()
	if id >= uint64(len(n.list)) {
		d.bad = true
		return ""
	}
	return n.list[id]
}

// decode reads what encode wrote and calls each for every row. It adds new names to n.
func decode(frame []byte, n *names, at func(minute int64) bool, each func(minute int64, k key, r *row)) error {
	d := &decoder{rest: frame}
	number := int64(d.number())
	for i := d.number(); i > 0 && !d.bad; i-- {
		if len(n.list) >= maxNames {
			return errDamaged
		}
		n.add(d.text())
	}
	if d.bad {
		return errDamaged
	}
	if !at(number) {
		return nil
	}
	var r row
	for kind := range kinds {
		for i := d.number(); i > 0 && !d.bad; i-- {
			var k key
			switch kind {
			case ofResource:
				k.resource = d.name(n)
			case ofModel:
				k.resource, k.model = d.name(n), d.name(n)
			case ofAgent:
				k.agent = d.name(n)
			}
			r = row{}
			d.row(&r, n)
			if !d.bad {
				each(number, k, &r)
			}
		}
	}
	if d.bad {
		return errDamaged
	}
	return nil
}

func (d *decoder) row(r *row, n *names) {
	mask := d.number()
	for i, f := range r.fields() {
		if mask&(1<<i) != 0 {
			*f = d.signed()
		}
	}
	if mask&hasSlow != 0 {
		slow := d.number()
		for i := range r.Slow {
			if slow&(1<<i) != 0 {
				r.Slow[i] = int64(d.number())
			}
		}
	}
	if mask&hasClasses != 0 {
		for i := d.number(); i > 0 && !d.bad; i-- {
			name := d.name(n)
			r.class(name, d.signed())
		}
	}
}
