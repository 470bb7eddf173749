package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"github.com/sluicehq/sluice/internal/placed"
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

// appendOps adds operations of a member in the form of the script.
func appendOps(b []byte, ops []store.Op, places placed.Places) []byte {
	for i := range ops {
		op := &ops[i]
		if places != nil {
			there := *op
			places.Op(&there)
			op = &there
		}
		b = appendArray(b, len(opPieces))
		b = appendPieces(b, unsafe.Pointer(op), opPieces)
	}
	return b
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
