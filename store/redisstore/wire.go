package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/sluicehq/sluice/store"
)

// An operation goes to the script as an array of its fields, structs and arrays within it laid out flat: so
// the script reads it without copying. The fields are those of store.Op in order.

// piece is one field: where it is, and what.
type piece struct {
	at   uintptr
	kind reflect.Kind
	of   []piece // of a slice's elements
	size uintptr
}

var (
	opPieces     = piecesOf(reflect.TypeFor[store.Op](), 0, nil)
	resultPieces = piecesOf(reflect.TypeFor[store.Result](), 0, nil)
)

func piecesOf(t reflect.Type, at uintptr, list []piece) []piece {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			list = piecesOf(f.Type, at+f.Offset, list)
		}
		return list
	case reflect.Array:
		for i := range t.Len() {
			list = piecesOf(t.Elem(), at+uintptr(i)*t.Elem().Size(), list)
		}
		return list
	case reflect.Slice:
		return append(list, piece{at: at, kind: reflect.Slice, of: piecesOf(t.Elem(), 0, nil), size: t.Elem().Size()})
	default:
		return append(list, piece{at: at, kind: t.Kind()})
	}
}

// batch is operations in the form of the script. Acquires that are alike and closes that say nothing else
// are sent together: most batches are some of each.
type batch struct {
	body  []byte
	items []item
	ids   []store.ID
	group store.Op // the acquire of the last item
}

// item is what goes to the script as one.
type item struct {
	kind  int8 // opItem, likeItem or closeItem
	count int
	at    int // in body, where its operation or its first number begins

	amounts int // of a likeItem
}

const (
	opItem    = iota
	likeItem  // the same acquire, count times
	closeItem // closes of one session
)

// add adds an operation, in the order of the pool's limits.
func (b *batch) add(op *store.Op) {
	b.ids = append(b.ids, op.ID)
	n := len(b.items)
	switch {
	case op.Kind == store.OpAcquire && isPlain(op):
		if n > 0 && b.items[n-1].kind == likeItem && op.ID.N == 0 && alike(op, &b.group) {
			b.items[n-1].count++
			return
		}
		b.group = *op
		b.begin(likeItem)
		b.items[n].amounts = amountsOf(op)
		b.body = appendPlain(b.body, op)
	case op.Kind == store.OpClose && !op.Spent && op.Amounts == [store.MaxLimits]int64{}:
		if k := len(b.ids) - 2; n == 0 || b.items[n-1].kind != closeItem || b.ids[k].Session != op.ID.Session {
			b.begin(closeItem)
			b.items[n].count = 0
		}
		b.body = appendInt(b.body, int64(op.ID.N)) //nolint:gosec // below 2^53
		b.items[len(b.items)-1].count++
	default:
		b.begin(opItem)
		b.body = appendPieces(appendArray(b.body, len(opPieces)), unsafe.Pointer(op), opPieces)
	}
}

func (b *batch) begin(kind int8) {
	b.items = append(b.items, item{kind: kind, count: 1, at: len(b.body)})
}

// isPlain reports whether an acquire says nothing but who asks, how much, and for how long.
func isPlain(op *store.Op) bool {
	return op.User == "" && op.Model == "" && op.Tool == "" && op.Key == "" && !op.Retry && !op.Emergency && !op.Force && !op.Spent && op.Tie != store.TieGone
}

// alike reports whether two plain acquires ask for the same.
func alike(a, b *store.Op) bool {
	return a.ID == b.ID && a.Agent == b.Agent && a.Class == b.Class && a.Amounts == b.Amounts && a.Wait == b.Wait && a.Alive == b.Alive && a.TTL == b.TTL && a.Tie == b.Tie
}

// plainHead is how many parts of a plain acquire come after its number: agent, class, wait, alive, TTL, tie.
const plainHead = 6

// amountsOf returns how many limits an operation says anything of.
func amountsOf(op *store.Op) int {
	n := len(op.Amounts)
	for n > 0 && op.Amounts[n-1] == 0 {
		n--
	}
	return n
}

func appendPlain(b []byte, op *store.Op) []byte {
	b = appendInt(appendInt(b, int64(op.ID.Session)), int64(op.ID.N)) //nolint:gosec // below 2^53
	b = appendInt(appendString(b, op.Agent), int64(op.Class))
	b = appendInt(appendInt(appendInt(b, int64(op.Wait)), int64(op.Alive)), int64(op.TTL))
	b = appendInt(b, int64(op.Tie))
	for _, amount := range op.Amounts[:amountsOf(op)] {
		b = appendInt(b, amount)
	}
	return b
}

// bytes returns what the script reads.
func (b *batch) bytes() []byte {
	out := appendArray(make([]byte, 0, len(b.body)+12*len(b.items)+8), len(b.items))
	next := 0
	for i, it := range b.items {
		end := len(b.body)
		if i+1 < len(b.items) {
			end = b.items[i+1].at
		}
		switch it.kind {
		case likeItem:
			out = appendInt(appendInt(appendArray(out, 4+plainHead+it.amounts), -1), int64(it.count))
		case closeItem:
			out = appendInt(appendInt(appendArray(out, it.count+2), -2), int64(b.ids[next].Session)) //nolint:gosec // below 2^53
		}
		out = append(out, b.body[it.at:end]...)
		next += it.count
	}
	return out
}

// results reads what became of the operations. into is called for each, in order.
func (b *batch) results(in *reader, now store.Time, into func(i int) *store.Result) {
	next := 0
	for _, it := range b.items {
		quick, first := 0, int64(0)
		switch it.kind {
		case likeItem:
			quick, first = int(in.int()), in.int()
		case closeItem:
			quick = int(in.int())
		}
		for k := range it.count {
			r := into(next)
			switch {
			case k >= quick:
				in.result(r)
			case it.kind == likeItem:
				id := store.ID{Session: b.ids[next].Session, N: uint64(first) + uint64(k)} //nolint:gosec // never negative
				*r = store.Result{State: store.Granted, ID: id, Now: now, GrantedAt: now, Reason: store.Reason{Limit: -1}}
			default:
				*r = store.Result{State: store.Ended, ID: b.ids[next], Now: now, Reason: store.Reason{Limit: -1}}
			}
			next++
			if in.bad {
				return
			}
		}
	}
}

func appendPieces(b []byte, p unsafe.Pointer, list []piece) []byte {
	for k := range list {
		x := &list[k]
		at := unsafe.Add(p, x.at)
		switch x.kind {
		case reflect.String:
			b = appendString(b, *(*string)(at))
		case reflect.Slice:
			s := (*[]byte)(at) // any slice: only its length and where it begins are read
			b = appendArray(b, len(*s))
			for i := range len(*s) {
				elem := unsafe.Add(unsafe.Pointer(unsafe.SliceData(*s)), uintptr(i)*x.size)
				if len(x.of) > 1 {
					b = appendArray(b, len(x.of))
				}
				b = appendPieces(b, elem, x.of)
			}
		default:
			b = appendInt(b, intAt(at, x.kind))
		}
	}
	return b
}

func intAt(p unsafe.Pointer, k reflect.Kind) int64 {
	switch k {
	case reflect.Int, reflect.Int64:
		return *(*int64)(p)
	case reflect.Uint64:
		return int64(*(*uint64)(p)) //nolint:gosec // sessions and numbers are below 2^53
	case reflect.Int8:
		return int64(*(*int8)(p))
	case reflect.Uint8, reflect.Bool:
		return int64(*(*uint8)(p))
	}
	panic(fmt.Sprintf("redisstore: an operation has a field of kind %v", k))
}

func setInt(p unsafe.Pointer, k reflect.Kind, n int64) {
	switch k {
	case reflect.Int, reflect.Int64:
		*(*int64)(p) = n
	case reflect.Uint64:
		*(*uint64)(p) = uint64(n) //nolint:gosec // never negative
	case reflect.Int8:
		*(*int8)(p) = int8(n) //nolint:gosec // it was one
	case reflect.Uint8:
		*(*uint8)(p) = uint8(n) //nolint:gosec // it was one
	case reflect.Bool:
		*(*bool)(p) = n != 0
	default:
		panic(fmt.Sprintf("redisstore: a result has a field of kind %v", k))
	}
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x90|byte(n))
	case n < 1<<16:
		return append(b, 0xdc, byte(n>>8), byte(n))
	default:
		return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n)) //nolint:gosec // batches are bounded
	}
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<16:
		b = append(b, 0xda, byte(n>>8), byte(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n)) //nolint:gosec // names are bounded
	}
	return append(b, s...)
}

func appendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0 && n < 128:
		return append(b, byte(n))
	case n >= -32 && n < 0:
		return append(b, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n)) //nolint:gosec // the same bits
	default:
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n)) //nolint:gosec // the same bits
	}
}

// errGarbled tells that a reply is not what the script sends.
var errGarbled = errors.New("redis answered something that is not from Sluice's script")

// reader reads what cmsgpack writes.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n || n < 0 {
		r.bad, r.b = true, nil
		return make([]byte, max(n, 0)%16)
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) uint(n int) (v uint64) {
	for _, c := range r.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *reader) array() int {
	switch c := r.uint(1); {
	case c&0xf0 == 0x90:
		return int(c & 0x0f)
	case c&0xf0 == 0x80 && c&0x0f == 0:
		return 0
	case c == 0xdc:
		return int(r.uint(2))
	case c == 0xdd:
		return int(r.uint(4)) //nolint:gosec // what is not there is noticed
	}
	r.bad = true
	return 0
}

func (r *reader) text() string {
	switch c := r.uint(1); {
	case c&0xe0 == 0xa0:
		return string(r.take(int(c & 0x1f)))
	case c == 0xd9:
		return string(r.take(int(r.uint(1))))
	case c == 0xda:
		return string(r.take(int(r.uint(2))))
	}
	r.bad = true
	return ""
}

func (r *reader) int() int64 {
	switch c := r.uint(1); {
	case c < 0x80:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c)) //nolint:gosec // the same bits
	default:
		return r.wide(c)
	}
}

func (r *reader) wide(c uint64) int64 {
	switch c {
	case 0xca:
		return int64(math.Float32frombits(uint32(r.uint(4)))) //nolint:gosec // four bytes
	case 0xcb:
		return int64(math.Float64frombits(r.uint(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		return int64(r.uint(1 << (c - 0xcc))) //nolint:gosec // below 2^53
	case 0xd0:
		return int64(int8(r.uint(1))) //nolint:gosec // the same bits
	case 0xd1:
		return int64(int16(r.uint(2))) //nolint:gosec // the same bits
	case 0xd2:
		return int64(int32(r.uint(4))) //nolint:gosec // the same bits
	case 0xd3:
		return int64(r.uint(8)) //nolint:gosec // the same bits
	}
	r.bad = true
	return 0
}

// result reads one operation's result.
func (r *reader) result(into *store.Result) {
	for k := range resultPieces {
		x := &resultPieces[k]
		setInt(unsafe.Add(unsafe.Pointer(into), x.at), x.kind, r.int())
	}
}
