package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
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

// batch is operations in the form of the script.
type batch struct {
	body []byte
	ops  []form
	last store.ID // whose answer is the last item, and may be joined by its close
	at   int      // where that item begins
	long bool     // nothing goes by the fast path
}

// form is how one operation was sent.
type form struct {
	id   store.ID
	kind uint8
}

const (
	plainForm  = iota // as an operation
	askForm           // as a pool.Ask
	answerForm        // as a pool.Done
	closeForm
	joinedForm // as the close of the pool.Done before it
)

// The kinds by which the script knows what the fast path takes.
const (
	askKind  = -1
	doneKind = -2
)

// add adds an operation, in the order of the pool's limits. A close that follows its answer goes with it.
func (b *batch) add(op *store.Op) {
	kind, last := uint8(plainForm), b.last
	b.last = store.ID{}
	switch {
	case b.long:
		b.body = appendOp(b.body, op)
	case op.Kind == store.OpAcquire && canAsk(op):
		kind = askForm
		b.body = appendAsk(b.body, op)
	case op.Kind == store.OpAnswer && op.Verdict == store.VerdictOK && len(op.Observed) == 0 && !op.Force:
		kind = answerForm
		b.last, b.at = op.ID, len(b.body)
		b.body = appendDone(b.body, op, 1, 0)
	case op.Kind == store.OpClose && !op.Spent && last == op.ID && last.N != 0:
		kind = joinedForm
		b.body = appendDone(b.body[:b.at], op, 1, 1)
	case op.Kind == store.OpClose && !op.Spent:
		kind = closeForm
		b.body = appendDone(b.body, op, 0, 1)
	default:
		b.body = appendOp(b.body, op)
	}
	b.ops = append(b.ops, form{op.ID, kind})
}

func appendOp(b []byte, op *store.Op) []byte {
	return appendPieces(appendArray(b, len(opPieces)), unsafe.Pointer(op), opPieces)
}

// canAsk reports whether a pool.Ask says all that an acquire does.
func canAsk(op *store.Op) bool {
	whole := func(d time.Duration) bool { return d%time.Microsecond == 0 }
	return !op.Emergency && !op.Force && !op.Spent && (op.Wait < 0 || whole(op.Wait)) && op.Alive >= 0 && whole(op.Alive) && whole(op.TTL) &&
		op.Wait <= store.MaxWindow && op.Alive <= store.MaxTTL && op.TTL <= store.MaxTTL && op.Tie <= store.TieGone && op.ID.N>>63 == 0 && op.Agent != "" &&
		max(len(op.Agent), len(op.User), len(op.Model), len(op.Tool), len(op.Key)) <= store.MaxName
}

// amountsOf returns how many limits an operation says anything of.
func amountsOf(op *store.Op) int {
	n := len(op.Amounts)
	for n > 0 && op.Amounts[n-1] == 0 {
		n--
	}
	return n
}

// appendAsk writes the fields of a pool.Ask in their order.
func appendAsk(b []byte, op *store.Op) []byte {
	n := amountsOf(op)
	b = appendInt(appendArray(b, 14+n), askKind)
	b = appendID(b, op.ID)
	b = appendString(appendString(appendString(appendString(appendString(b, op.Agent), op.User), op.Model), op.Tool), op.Key)
	b = appendInt(appendInt(b, int64(op.Class)), int64(op.Tie))
	b = appendBool(b, op.Retry)
	wait := int64(-1)
	if op.Wait >= 0 {
		wait = op.Wait.Microseconds()
	}
	b = appendInt(appendInt(appendInt(b, wait), op.Alive.Microseconds()), op.TTL.Microseconds())
	return appendAmounts(b, op, n)
}

// appendDone writes the fields of a pool.Done in their order.
func appendDone(b []byte, op *store.Op, answer, close int64) []byte {
	n := 0
	if close != 0 {
		n = amountsOf(op)
	}
	b = appendInt(appendArray(b, 5+n), doneKind)
	b = appendID(b, op.ID)
	return appendAmounts(appendInt(appendInt(b, answer), close), op, n)
}

func appendID(b []byte, id store.ID) []byte {
	return appendInt(appendInt(b, int64(id.Session)), int64(id.N)) //nolint:gosec // below 2^53
}

func appendBool(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendAmounts(b []byte, op *store.Op, n int) []byte {
	for _, amount := range op.Amounts[:n] {
		b = appendInt(b, amount)
	}
	return b
}

// bytes returns what the script reads.
func (b *batch) bytes() []byte {
	items := 0
	for _, f := range b.ops {
		if f.kind != joinedForm {
			items++
		}
	}
	return append(appendArray(make([]byte, 0, len(b.body)+8), items), b.body...)
}

// results reads what became of the operations. into is called for each, in order.
func (b *batch) results(in *reader, now store.Time, into func(i int) *store.Result) {
	fast := 0
	if len(b.ops) > 0 {
		fast = int(in.int())
	}
	for i, f := range b.ops {
		r := into(i)
		if f.kind != joinedForm {
			fast--
		}
		if fast < 0 {
			in.result(r)
		} else {
			*r = store.Result{State: store.Granted, ID: f.id, Now: now, Reason: store.Reason{Limit: -1}}
			switch f.kind {
			case askForm:
				r.ID.N, r.GrantedAt = uint64(in.int()), now //nolint:gosec // never negative
			case closeForm, joinedForm:
				r.State = store.Ended
			}
		}
		if in.bad {
			return
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
