package pool

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/oplog"
)

// Schema describes how a pool is stored as the fields of a hash, by a store that runs the pool's functions in another
// language.
type Schema struct {
	Slabs  []SlabSchema
	Config []ConfigSchema
}

// SlabSchema describes how the records of a slab are stored.
type SlabSchema struct {
	Name, Key string
	Slots     int // numbers in a record, without the link of a free record
}

// ConfigSchema says where in the "cfg" field a value derived from the spec is stored.
type ConfigSchema struct {
	Name          string
	Offset, Slots int
}

// pageLen is the number of elements of a large array in one field.
const pageLen = 16

// specField is the name of the field with the spec.
const specField = "s"

// image is a pool as fields.
type image map[string]string

// Fields returns the whole pool as fields. FromFields is the inverse.
func (p *Pool) Fields(l *Schema) map[string]string {
	p.SpellOut()
	im := image{specField: string(oplog.AppendSpec(nil, &p.spec))}
	slabs := p.slabs()
	for _, s := range l.Slabs {
		switch s.Name {
		case "names":
			p.putNames(im, s)
		case "defs", "limits":
		default:
			putSlab(im, s, slabs[s.Name])
		}
	}
	for i := range p.spec.Limits {
		im.put(fmt.Sprint(l.slab("defs").Key, i+1), flat.AppendNumbers(nil, &p.defs[i]), 0)
		nums := flat.AppendNumbers(nil, &p.spec.Limits[i])
		nums[0] = float64(i) // to the script, the number of a limit is its name
		im.put(fmt.Sprint(l.slab("limits").Key, i+1), nums, 0)
	}
	for name, rec := range p.singles() {
		im.put(name, flat.AppendNumbers(nil, rec), 0)
		im.putLarge(name, flat.Large(rec))
	}
	im.put("cfg", p.config(l), 0)
	for _, x := range p.indexes() {
		x.each(func(key []byte, rec int32) {
			f := x.prefix + string(key)
			if im[f] != "" {
				im[f] += ","
			}
			im[f] += fmt.Sprint(rec)
		})
	}
	return im
}

func (l *Schema) slab(name string) *SlabSchema {
	for i := range l.Slabs {
		if l.Slabs[i].Name == name {
			return &l.Slabs[i]
		}
	}
	panic("pool: no slab " + name)
}

// put stores a record. next is the link of a free record to the next free one, otherwise 0.
func (im image) put(field string, nums []float64, next int32) {
	im[field] = pack(append([]float64{float64(next)}, nums...))
}

// putLarge stores the large arrays of a record in pages. It leaves out pages of zeros.
func (im image) putLarge(field string, list []flat.LargeArray) {
	for _, a := range list {
		for page := 0; page*pageLen < len(a.Nums); page++ {
			part := make([]float64, pageLen)
			copy(part, a.Nums[page*pageLen:])
			if slices.ContainsFunc(part, func(n float64) bool { return n != 0 }) {
				im[fmt.Sprintf("%s/%s.%d", field, a.Name, page)] = pack(part)
			}
		}
	}
}

// get reads a record of n numbers and its link. Numbers that an older version did not write are 0.
func (im image) get(field string, n int) (nums []float64, next int32) {
	s := im[field]
	nums = make([]float64, n)
	if len(s) < 8 {
		return nums, 0
	}
	unpack(s[8:], nums)
	var first [1]float64
	unpack(s, first[:])
	return nums, int32(first[0])
}

func (im image) getLarge(field string, list []flat.LargeArray) {
	for _, a := range list {
		nums := make([]float64, (len(a.Nums)+pageLen-1)/pageLen*pageLen)
		for page := 0; page*pageLen < len(nums); page++ {
			unpack(im[fmt.Sprintf("%s/%s.%d", field, a.Name, page)], nums[page*pageLen:])
		}
		a.Set(nums)
	}
}

// Pack encodes numbers in the form that the Lua script reads.
func Pack(nums []float64) string { return pack(nums) }

func pack(nums []float64) string {
	b := make([]byte, 0, 8*len(nums))
	for _, n := range nums {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return string(b)
}

func unpack(s string, into []float64) {
	for i := range min(len(into), len(s)/8) {
		into[i] = math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[8*i : 8*i+8])))
	}
}

func putSlab(im image, s SlabSchema, slab flat.Numbered) {
	h := slab.Head()
	im["h"+s.Key] = pack([]float64{float64(h[0]), float64(h[1]), float64(h[2])})
	unused := slab.Unused()
	free := map[int32]int32{}
	for k, i := range unused {
		free[i] = 0
		if k+1 < len(unused) {
			free[i] = unused[k+1]
		}
	}
	for i := int32(1); i < h[0]; i++ {
		field := fmt.Sprint(s.Key, i)
		nums := slab.Numbers(nil, i)
		next, isFree := free[i]
		if isFree {
			clear(nums)
		} else {
			im.putLarge(field, slab.Large(i))
		}
		im.put(field, nums, next)
	}
}

func (p *Pool) putNames(im image, s SlabSchema) {
	list, end := p.names.All()
	for _, n := range list {
		im["n"+n.Text] = fmt.Sprint(n.Number)
		im[fmt.Sprint("m", n.Number)] = n.Text
		im.put(fmt.Sprint(s.Key, n.Number), []float64{float64(n.Refs), float64(n.Tags[0]), float64(n.Tags[1])}, 0)
	}
	unused := p.names.Unused()
	first := int32(0)
	for k, i := range slices.Backward(unused) {
		next := int32(0)
		if k+1 < len(unused) {
			next = unused[k+1]
		}
		im.put(fmt.Sprint(s.Key, i), []float64{0, 0, 0}, next)
		first = i
	}
	im["h"+s.Key] = pack([]float64{float64(end), float64(first), float64(len(unused))})
}

// FromFields returns a copy of the pool in fields, on the heap.
func FromFields(l *Schema, fields map[string]string) (*Pool, error) {
	im := image(fields)
	spec, err := oplog.DecodeSpec([]byte(im[specField]))
	if err != nil {
		return nil, fmt.Errorf("the pool's limits cannot be read: %w", err)
	}
	p := open(nil)
	slabs := p.slabs()
	for _, s := range l.Slabs {
		if slab := slabs[s.Name]; slab != nil {
			getSlab(im, s, slab)
		}
	}
	p.getNames(im, l.slab("names"))
	for name, rec := range p.singles() {
		nums, _ := im.get(name, len(flat.AppendNumbers(nil, rec)))
		flat.SetNumbers(rec, nums)
		im.getLarge(name, flat.Large(rec))
	}
	if err := p.adopt(spec); err != nil {
		return nil, err
	}
	p.takeParts()
	for _, x := range p.indexes() {
		x.fill()
	}
	return p, nil
}

// FromSpec creates a pool that has only the limits of another, and knows which of them are retired. spec and state are
// the fields "s" and "once" of that pool.
func FromSpec(spec, state string) (*Pool, error) {
	p, err := FromFields(&Schema{Slabs: []SlabSchema{{Name: "names"}}}, image{specField: spec})
	if err != nil {
		return nil, err
	}
	nums, _ := image{"once": state}.get("once", len(flat.AppendNumbers(nil, p.once)))
	o := new(once)
	flat.SetNumbers(o, nums)
	p.retired = o.retired
	return p, nil
}

// head reads the head of a slab: the end of its records, the first free one, and the number of free ones.
func (im image) head(s *SlabSchema) (h [3]int32) {
	var nums [3]float64
	unpack(im["h"+s.Key], nums[:])
	for i := range h {
		h[i] = int32(nums[i])
	}
	return h
}

func getSlab(im image, s SlabSchema, slab flat.Numbered) {
	head := im.head(&s)
	slab.SetHead(head)
	next := make([]int32, head[0])
	for i := int32(1); i < head[0]; i++ {
		field := fmt.Sprint(s.Key, i)
		nums, link := im.get(field, s.Slots)
		slab.SetNumbers(i, nums)
		im.getLarge(field, slab.Large(i))
		next[i] = link
	}
	// The count bounds the loop, in case a damaged list goes in circles.
	for i, n := head[1], int32(0); i > 0 && i < head[0] && n < head[2]; i, n = next[i], n+1 {
		slab.SetNext(i, next[i])
	}
}

func (p *Pool) getNames(im image, s *SlabSchema) {
	var list []flat.Named
	end := im.head(s)[0]
	for i := int32(1); i < end; i++ {
		nums, _ := im.get(fmt.Sprint(s.Key, i), s.Slots)
		if nums[0] > 0 {
			list = append(list, flat.Named{Number: i, Refs: int32(nums[0]), Tags: [2]int32{int32(nums[1]), int32(nums[2])}, Text: im[fmt.Sprint("m", i)]})
		}
	}
	p.names.SetAll(list, max(end, 1))
}

func (p *Pool) singles() map[string]any {
	return map[string]any{"once": p.once, "counts": p.queue.Counts(), "sum": p.callers.sum, "past": p.history.past}
}

func (p *Pool) slabs() map[string]flat.Numbered {
	m := map[string]flat.Numbered{
		"tickets": &p.tickets, "insts": &p.insts, "rings": &p.rings, "stocks": &p.stocks, "paces": &p.paces, "models": &p.models, "answers": &p.answers, "leases": &p.leases,
		"gates": &p.gates, "sessions": &p.sessions, "members": &p.members, "crecs": &p.callers.recs, "hperiods": &p.history.periods,
	}
	for name, s := range p.queue.Slabs() {
		m[name] = s
	}
	return m
}

// config returns the values derived from the spec, in the order of the schema.
func (p *Pool) config(l *Schema) []float64 {
	var nums []float64
	for _, f := range l.Config {
		if f.Name == "widest" {
			nums = append(nums, float64(max(len(p.spec.Classes)+1, p.queue.Widest())))
			continue
		}
		owner, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(f.Name, "pool."), "store."), ".")
		if s, ok := strings.CutSuffix(rest, ".len"); ok {
			nums = append(nums, float64(reflect.ValueOf(&p.spec).Elem().FieldByName(s).Len()))
			continue
		}
		var v reflect.Value
		switch owner {
		case "Pool":
			v = reflect.ValueOf(p).Elem()
		case "Spec":
			v = reflect.ValueOf(&p.spec).Elem()
		case "history":
			v = reflect.ValueOf(&p.history).Elem()
		case "order":
			v, rest = reflect.ValueOf(&p.queue).Elem(), strings.TrimPrefix(rest, "Queue.")
		}
		field := v.FieldByName(rest)
		nums = flat.AppendNumbers(nums, reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Interface())
	}
	return nums
}

// Retired returns the set of limits that no member uses any more.
func (p *Pool) Retired() uint16 { return p.retired }

// index is a hash index. Stores outside this process use keys with a prefix instead of hashes.
type index struct {
	prefix string
	each   func(func(key []byte, rec int32))
	fill   func()
}

func (p *Pool) indexes() []index {
	list := []index{
		{"ia", p.eachTicket, func() {
			p.eachTicket(func(_ []byte, i int32) { p.ticketIx.Add(idHash(p.tickets.At(i).id), i) })
		}},
		{"ib", p.eachScoped, func() {
			p.eachScoped(func(_ []byte, i int32) {
				p.instIx.Add(scopeHash(int(p.insts.At(i).limit), p.insts.At(i).scope), i)
			})
		}},
		{"ic", p.eachSession, func() {
			p.eachSession(func(_ []byte, i int32) { p.sessIx.Add(sessionHash(p.sessions.At(i).id), i) })
		}},
	}
	for prefix, x := range p.queue.Indexes() {
		list = append(list, index{prefix, x.Each, x.Fill})
	}
	return list
}

func (p *Pool) eachTicket(f func([]byte, int32)) {
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); t.state != 0 {
			f([]byte(pack([]float64{float64(t.id.Session), float64(t.id.N)})), i)
		}
	}
}

func (p *Pool) eachSession(f func([]byte, int32)) {
	for i := int32(1); i < p.sessions.End(); i++ {
		if s := p.sessions.At(i); s.id != 0 {
			f([]byte(pack([]float64{float64(s.id)})), i)
		}
	}
}

// eachScoped visits the meters in instIx: those whose scope is not a single name.
func (p *Pool) eachScoped(f func([]byte, int32)) {
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if per := p.spec.Limits[in.limit].Per; !in.used || per == 0 || in.scope.sole(per) != 0 {
			continue
		}
		key := []byte{in.limit}
		for _, n := range []int32{in.scope.agent, in.scope.user, in.scope.model, in.scope.tool, in.scope.key} {
			key = binary.LittleEndian.AppendUint32(key, uint32(n))
		}
		f(key, i)
	}
}
