package flat

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// A record can be written as a list of numbers: the fields of embedded structs first, then the others, with arrays
// and structs flattened. Stores without records, such as Redis, keep it in this form. All numbers are below 2^53.

// AppendNumbers appends the numbers of the record that v points to.
func AppendNumbers(to []float64, v any) []float64 {
	return appendNumbers(to, reflect.ValueOf(v).Elem())
}

// SetNumbers sets the record that v points to, and returns the remaining numbers.
func SetNumbers(v any, from []float64) []float64 {
	return setNumbers(reflect.ValueOf(v).Elem(), from)
}

// LargeArray is an array of which a step uses only few elements. It is stored separately from its record.
type LargeArray struct {
	Name string
	Nums []float64
	set  func([]float64)
}

// Set sets the elements.
func (l LargeArray) Set(nums []float64) { l.set(nums) }

// Large returns the large arrays of the record that v points to.
func Large(v any) []LargeArray { return large(nil, reflect.ValueOf(v).Elem()) }

func large(list []LargeArray, v reflect.Value) []LargeArray {
	if v.Kind() != reflect.Struct || !fieldsOf(v.Type()).large {
		return list
	}
	for i := range v.NumField() {
		field := v.Field(i)
		if field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem(); !isLarge(field.Type()) {
			list = large(list, field)
			continue
		}
		a := LargeArray{Name: v.Type().Field(i).Name}
		for k := range field.Len() {
			a.Nums = appendNumbers(a.Nums, field.Index(k))
		}
		a.set = func(nums []float64) {
			for k := range field.Len() {
				nums = setNumbers(field.Index(k), nums)
			}
		}
		list = append(list, a)
	}
	return list
}

func isLarge(t reflect.Type) bool { return t.Kind() == reflect.Array && t.Len() > 63 }

// fields describes a struct type. To ask reflection again for each of a pool's records takes most of the time to read
// them.
type fields struct {
	order []int // of the fields, embedded structs first, without large arrays
	large bool  // the struct has large arrays, or a struct in it does
}

var fieldsByType sync.Map // reflect.Type to *fields

func fieldsOf(t reflect.Type) *fields {
	if known, ok := fieldsByType.Load(t); ok {
		return known.(*fields)
	}
	fs := &fields{}
	for _, embedded := range []bool{true, false} {
		for i := range t.NumField() {
			f := t.Field(i)
			fs.large = fs.large || isLarge(f.Type) || f.Type.Kind() == reflect.Struct && fieldsOf(f.Type).large
			if f.Name != "_" && !isLarge(f.Type) && embedded == (f.Anonymous && f.Type.Kind() == reflect.Struct) {
				fs.order = append(fs.order, i)
			}
		}
	}
	fieldsByType.Store(t, fs)
	return fs
}

// inOrder calls f with the fields of a struct, embedded structs first. It skips large arrays.
func inOrder(v reflect.Value, f func(reflect.Value)) {
	for _, i := range fieldsOf(v.Type()).order {
		field := v.Field(i)
		f(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	}
}

func appendNumbers(to []float64, v reflect.Value) []float64 {
	switch v.Kind() {
	case reflect.Struct:
		inOrder(v, func(f reflect.Value) { to = appendNumbers(to, f) })
	case reflect.Array:
		for i := range v.Len() {
			to = appendNumbers(to, v.Index(i))
		}
	case reflect.Bool:
		n := 0.0
		if v.Bool() {
			n = 1
		}
		to = append(to, n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		to = append(to, float64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		to = append(to, float64(v.Uint()))
	case reflect.String:
		to = append(to, 0) // only people need the text
	default:
		panic(fmt.Sprintf("flat: a %v cannot be a number", v.Type()))
	}
	return to
}

func setNumbers(v reflect.Value, from []float64) []float64 {
	switch v.Kind() {
	case reflect.Struct:
		inOrder(v, func(f reflect.Value) { from = setNumbers(f, from) })
		return from
	case reflect.Array:
		for i := range v.Len() {
			from = setNumbers(v.Index(i), from)
		}
		return from
	case reflect.Bool:
		v.SetBool(from[0] != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(from[0]))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(from[0]))
	default:
		panic(fmt.Sprintf("flat: a %v cannot be a number", v.Type()))
	}
	return from[1:]
}

// Numbered is a slab whose records can be read and set as numbers.
type Numbered interface {
	// Head returns the number of records handed out, the first free one and the number of free ones.
	Head() [3]int32
	// SetHead sets the values of Head and makes room for the records.
	SetHead(h [3]int32)
	// Unused returns the free records in the order of the free list.
	Unused() []int32
	// Numbers appends the numbers of record i.
	Numbers(to []float64, i int32) []float64
	// SetNumbers sets record i.
	SetNumbers(i int32, from []float64)
	// Large returns the large arrays of record i.
	Large(i int32) []LargeArray
	// SetNext sets the successor of the free record i in the free list.
	SetNext(i, next int32)
}

// Head implements [Numbered].
func (s *Slab[T]) Head() [3]int32 {
	if s.head == nil {
		return [3]int32{}
	}
	return [3]int32{s.head.used, s.head.free, s.head.idle}
}

// SetHead implements [Numbered].
func (s *Slab[T]) SetHead(h [3]int32) {
	if s.head == nil {
		s.head = new(slabHead)
	}
	s.head.used, s.head.free, s.head.idle = h[0], h[1], h[2]
	for int(h[0]) > len(s.chunks)*chunkLen {
		s.grow()
	}
}

// Unused implements [Numbered].
func (s *Slab[T]) Unused() (list []int32) {
	if s.head == nil {
		return nil
	}
	for i := s.head.free; i != 0; i = *s.link(i) {
		list = append(list, i)
	}
	return list
}

// Numbers implements [Numbered].
func (s *Slab[T]) Numbers(to []float64, i int32) []float64 { return AppendNumbers(to, s.At(i)) }

// SetNumbers implements [Numbered].
func (s *Slab[T]) SetNumbers(i int32, from []float64) { SetNumbers(s.At(i), from) }

// Large implements [Numbered].
func (s *Slab[T]) Large(i int32) []LargeArray { return Large(s.At(i)) }

// SetNext implements [Numbered].
func (s *Slab[T]) SetNext(i, next int32) { *s.link(i) = next }

// Named is one interned name.
type Named struct {
	Number int32
	Refs   int32
	Tags   [2]int32
	Text   string
}

// All returns all names, and a number above those of all of them.
func (n *Names) All() (list []Named, end int32) {
	for i := int32(1); i < n.recs.End(); i++ {
		if r := n.recs.At(i); r.refs > 0 {
			list = append(list, Named{i, r.refs, r.tags, n.Text(i)})
		}
	}
	return list, n.recs.End()
}

// SetAll creates names with given numbers. end is the first number that is not used.
func (n *Names) SetAll(list []Named, end int32) {
	n.recs.SetHead([3]int32{end, 0, 0})
	taken := map[int32]bool{}
	for _, x := range list {
		taken[x.Number] = true
		r := n.recs.At(x.Number)
		k := copy(r.text[:], x.Text)
		r.size, r.refs, r.tags, r.hash = uint16(k), x.Refs, x.Tags, uint32(Hash(x.Text))
		if k < len(x.Text) {
			next := n.store(x.Text[k:]) // past the end: growing a slab does not move records
			n.recs.At(x.Number).next = next
		}
		n.index.Add(r.hash, x.Number)
	}
	for i := end - 1; i > 0; i-- {
		if !taken[i] {
			n.recs.Recycle(i)
		}
	}
}

// Unused returns the free numbers in the order in which they will be used.
func (n *Names) Unused() []int32 { return n.recs.Unused() }
