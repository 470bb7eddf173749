package redisstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// An operation goes to the script as an array of the fields of store.Op, in order, with structs and arrays laid out flat.
// The script uses that array as it is, without copying.

// piece is one field.
type piece struct {
	at   uintptr // its offset
	kind reflect.Kind
	of   []piece // the fields of a slice's elements
	size uintptr // of a slice's element
}

// limitKind is the kind of a field with the name of a limit, which the script knows by its number.
const limitKind = reflect.Invalid

var (
	opPieces     = piecesOf(reflect.TypeFor[store.Op](), 0, nil)
	resultPieces = piecesOf(reflect.TypeFor[store.Result](), 0, nil)
)

func piecesOf(t reflect.Type, at uintptr, list []piece) []piece {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "Limit" && f.Type.Kind() == reflect.String {
				list = append(list, piece{at: at + f.Offset, kind: limitKind})
				continue
			}
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

// batch encodes operations in the form of the script. If the fast path knows all operations of a batch, they go as
// pool.Ends first, and then as pool.Lots of similar acquires. Otherwise each operation goes by itself.
type batch struct {
	long    bool   // do not use the fast path
	apart   bool   // a limit is per agent, so a lot holds acquires of one agent only
	asks    bool   // the request being added contains an acquire
	serial  bool   // a request has several acquires, whose tickets are numbered in order
	request int    // the index in ops at which the request being added begins
	closed  uint64 // the highest ticket number that this request closes
	ops     []*store.Op
	lots    [][]int
	ends    []ends
	last    []int // operations that are not about tickets
	forms   []form
}

// form is how one operation was sent. Forms are in the order of the script.
type form struct {
	id         store.ID
	op         int // its index in the batch
	item, part int // the item of the script that carries it, and its place there
	kind       uint8
}

const (
	plainForm  = iota // by itself
	askForm           // in a pool.Lot
	answerForm        // in a pool.Ends
	closeForm         // in a pool.Ends
)

// ends becomes a pool.Ends.
type ends struct {
	session               uint64
	answers, closes, used bool
	list                  []end
}

// turn orders ends: answers come before closes.
func (e *ends) turn() int {
	switch {
	case !e.closes:
		return 0
	case e.answers:
		return 1
	}
	return 2
}

// end is a ticket number, with the indexes of the operations that answer and close it; -1: none.
type end struct {
	n             uint64
	answer, close int
}

// add adds an operation with the numbers of limits. first marks the first operation of a request:
// order matters only within a request.
func (b *batch) add(op *store.Op, first bool) {
	b.serial = b.serial || b.asks && !first && op.Kind == store.OpAcquire
	b.asks = b.asks && !first || op.Kind == store.OpAcquire
	b.long = b.long || b.asks && op.Kind != store.OpAcquire || !isFast(op) || b.afterClose(op, first)
	b.ops = append(b.ops, op)
}

// afterClose reports whether op answers or closes a ticket that its request has already closed. The fast path would carry
// them out in another order.
func (b *batch) afterClose(op *store.Op, first bool) bool {
	if first {
		b.request, b.closed = len(b.ops), 0
	}
	if op.Kind != store.OpAnswer && op.Kind != store.OpClose {
		return false
	}
	if op.ID.N <= b.closed {
		for _, o := range b.ops[b.request:] {
			if o.Kind == store.OpClose && o.ID == op.ID {
				return true
			}
		}
	}
	if op.Kind == store.OpClose {
		b.closed = max(b.closed, op.ID.N)
	}
	return false
}

// isFast reports whether the fast path knows an operation and can express all of it.
func isFast(op *store.Op) bool {
	switch op.Kind {
	case store.OpAcquire:
		return canAsk(op)
	case store.OpAnswer:
		return op.Verdict == store.VerdictOK && len(op.Observed) == 0 && op.Rejected == 0 && !op.Force
	case store.OpClose:
		return !op.Spent
	}
	return op.Kind == store.OpTouch // not about tickets, so it goes last
}

// canAsk reports whether a pool.Lot can express all of an acquire.
func canAsk(op *store.Op) bool {
	for i := range op.Amounts {
		if op.Amounts[i].N < 0 {
			return false
		}
	}
	whole := func(d time.Duration) bool { return d%time.Microsecond == 0 }
	return op.ID.N == 0 && !op.Emergency && !op.Force && !op.Spent && (op.Wait < 0 || whole(op.Wait)) && op.Alive >= 0 && whole(op.Alive) && whole(op.TTL) &&
		op.Wait <= store.MaxWindow && op.Alive <= store.MaxTTL && op.TTL <= store.MaxTTL && op.Tie <= store.TieGone && op.Agent != "" &&
		max(len(op.Agent), len(op.User), len(op.Model), len(op.Tool), len(op.Key)) <= store.MaxName
}

// bytes encodes the batch for the script. It drops the operations and keeps their forms.
func (b *batch) bytes() []byte {
	out := make([]byte, 0, 64*len(b.ops)+64)
	b.forms = make([]form, 0, len(b.ops))
	if b.long {
		out = appendArray(out, len(b.ops))
		for i, op := range b.ops {
			b.forms = append(b.forms, form{op.ID, i, i, 0, plainForm})
			out = appendOp(out, op)
		}
		b.ops = nil
		return out
	}
	for i, op := range b.ops {
		switch op.Kind {
		case store.OpAcquire:
			b.lot(i, op)
		case store.OpTouch:
			b.last = append(b.last, i)
		default:
			b.end(i, op)
		}
	}
	// A late caller may send an answer and its close in two requests.
	slices.SortStableFunc(b.ends, func(x, y ends) int { return cmp.Compare(x.turn(), y.turn()) })
	out = appendArray(out, len(b.ends)+len(b.lots)+len(b.last))
	for i := range b.ends {
		out = b.appendEnds(out, i)
	}
	for i, ops := range b.lots {
		out = b.appendLot(out, len(b.ends)+i, ops)
	}
	for k, i := range b.last {
		b.forms = append(b.forms, form{b.ops[i].ID, i, len(b.ends) + len(b.lots) + k, 0, plainForm})
		out = appendOp(out, b.ops[i])
	}
	b.ops, b.lots, b.ends, b.last = nil, nil, nil, nil
	return out
}

// lot adds an acquire to a lot of similar ones.
func (b *batch) lot(i int, op *store.Op) {
	for k, ops := range b.lots {
		if b.serial && k < len(b.lots)-1 {
			continue
		}
		if o := b.ops[ops[0]]; o.ID == op.ID && o.Class == op.Class && o.Model == op.Model && o.User == op.User && o.Tool == op.Tool && o.Key == op.Key &&
			o.Tie == op.Tie && o.Retry == op.Retry && o.Alive == op.Alive && o.TTL == op.TTL && (!b.apart || o.Agent == op.Agent) {
			b.lots[k] = append(ops, i)
			return
		}
	}
	b.lots = append(b.lots, append(make([]int, 0, 8), i))
}

// end adds an answer or a close to the ends of its session. A close right after its answer goes with it.
func (b *batch) end(i int, op *store.Op) {
	e := end{op.ID.N, i, -1}
	if op.Kind == store.OpAnswer && i+1 < len(b.ops) && b.ops[i+1].Kind == store.OpClose && b.ops[i+1].ID == op.ID {
		return // added with its close
	}
	used := false
	if op.Kind == store.OpClose {
		e.answer, e.close = -1, i
		if i > 0 && b.ops[i-1].Kind == store.OpAnswer && b.ops[i-1].ID == op.ID {
			e.answer = i - 1
		}
		used = len(op.Amounts) > 0
	}
	for k := range b.ends {
		if g := &b.ends[k]; g.session == op.ID.Session && g.answers == (e.answer >= 0) && g.closes == (e.close >= 0) && g.used == used {
			g.list = append(g.list, e)
			return
		}
	}
	b.ends = append(b.ends, ends{op.ID.Session, e.answer >= 0, e.close >= 0, used, []end{e}})
}

// widthOf returns how many amounts to send per operation: those after the last one that is stated are left out.
func (b *batch) widthOf(ops int, of func(k int) *store.Op) (width int) {
	for k := range ops {
		for _, a := range of(k).Amounts {
			width = max(width, int(a.Limit[0])+1)
		}
	}
	return width
}

// appendLot appends the first fields of a pool.Lot in their order.
func (b *batch) appendLot(out []byte, item int, ops []int) []byte {
	op := b.ops[ops[0]]
	width := b.widthOf(len(ops), func(k int) *store.Op { return b.ops[ops[k]] })
	out = appendInt(appendArray(out, 16), pool.LotKind)
	out = appendInt(appendInt(out, int64(op.ID.Session)), 0) //nolint:gosec // below 2^53
	out = appendString(appendString(appendString(appendString(out, op.User), op.Model), op.Tool), op.Key)
	out = appendBool(appendInt(appendInt(out, int64(op.Class)), int64(op.Tie)), op.Retry)
	out = appendInt(appendInt(appendInt(out, op.Alive.Microseconds()), op.TTL.Microseconds()), int64(width))
	waits := 1
	for _, i := range ops {
		if b.ops[i].Wait != op.Wait {
			waits = len(ops)
		}
	}
	out = appendArray(out, waits)
	for _, i := range ops[:waits] {
		wait := int64(-1)
		if b.ops[i].Wait >= 0 {
			wait = b.ops[i].Wait.Microseconds()
		}
		out = appendInt(out, wait)
	}
	out = appendArray(out, len(ops))
	for _, i := range ops {
		out = appendString(out, b.ops[i].Agent)
	}
	out = appendArray(out, len(ops)*width)
	for part, i := range ops {
		out = appendAmounts(out, b.ops[i].Amounts, width, 0)
		b.forms = append(b.forms, form{op.ID, i, item, part, askForm})
	}
	return out
}

// appendEnds appends the fields of a pool.Ends in their order. It sorts by number, so that the tickets of a lot follow each
// other.
func (b *batch) appendEnds(out []byte, item int) []byte {
	e := &b.ends[item]
	slices.SortStableFunc(e.list, func(a, b end) int { return cmp.Compare(a.n, b.n) })
	width := 0
	if e.used {
		width = b.widthOf(len(e.list), func(k int) *store.Op { return b.ops[e.list[k].close] })
	}
	out = appendInt(appendInt(appendArray(out, 7), pool.EndsKind), int64(e.session)) //nolint:gosec // below 2^53
	out = appendInt(appendBool(appendBool(out, e.answers), e.closes), int64(width))
	out = appendArray(out, len(e.list))
	for _, t := range e.list {
		out = appendInt(out, int64(t.n)) //nolint:gosec // below 2^53
	}
	out = appendArray(out, len(e.list)*width)
	for part, t := range e.list {
		if t.close >= 0 {
			out = appendAmounts(out, b.ops[t.close].Amounts, width, -1)
		}
		if t.answer >= 0 {
			b.forms = append(b.forms, form{b.ops[t.answer].ID, t.answer, item, part, answerForm})
		}
		if t.close >= 0 {
			b.forms = append(b.forms, form{b.ops[t.close].ID, t.close, item, part, closeForm})
		}
	}
	return out
}

// appendAmounts appends amounts by limit. Those that are not stated become unstated.
func appendAmounts(b []byte, amounts []store.Amount, width int, unstated int64) []byte {
	var all [store.MaxLimits]int64
	for i := range all {
		all[i] = unstated
	}
	for _, a := range amounts {
		if a.N <= store.MaxAmount {
			all[a.Limit[0]] = a.N
		}
	}
	for _, n := range all[:width] {
		b = appendInt(b, n)
	}
	return b
}

func appendOp(b []byte, op *store.Op) []byte {
	return appendPieces(appendArray(b, len(opPieces)), unsafe.Pointer(op), opPieces)
}

func appendBool(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

// results reads the results of the operations. into returns where the result of operation i goes.
func (b *batch) results(in *reader, now store.Time, into func(i int) *store.Result) {
	items, parts := 0, 0
	if len(b.forms) > 0 {
		items, parts = int(in.int()), int(in.int())
	}
	first := int64(0)
	for _, f := range b.forms {
		r := into(f.op)
		if f.item > items || f.item == items && f.part >= parts {
			in.result(r)
		} else {
			*r = store.Result{State: store.Granted, ID: f.id, Now: now}
			switch f.kind {
			case askForm:
				if f.part == 0 {
					first = in.int()
				}
				r.ID.N, r.GrantedAt = uint64(first)+uint64(f.part), now //nolint:gosec // never negative
			case closeForm:
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
		case limitKind:
			if limit := *(*string)(at); limit == "" {
				b = appendString(b, "")
			} else {
				b = appendInt(b, int64(limit[0]))
			}
		case reflect.Slice:
			s := (*[]byte)(at) // stands for any slice: only its length and data pointer are read
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
		return int64(*(*uint64)(p)) //nolint:gosec // sessions and ticket numbers are below 2^53
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
	case n >= -32 && n < 128:
		return append(b, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n)) //nolint:gosec // the same bits
	default:
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n)) //nolint:gosec // the same bits
	}
}

// errGarbled reports a reply that the script does not send.
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

// array returns the length of a list. Each element has at least a byte, so a length beyond the rest of the reply is
// garbled: it must take no memory and no time.
func (r *reader) array() (n int) {
	switch c := r.uint(1); {
	case c&0xf0 == 0x90:
		n = int(c & 0x0f)
	case c&0xf0 == 0x80 && c&0x0f == 0:
	case c == 0xdc:
		n = int(r.uint(2))
	case c == 0xdd:
		n = int(r.uint(4)) //nolint:gosec // four bytes
	default:
		r.bad = true
	}
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return 0
	}
	return n
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

// limit reads the number of a limit, or an empty string.
func (r *reader) limit() string {
	if len(r.b) > 0 && r.b[0] == 0xa0 {
		return r.text()
	}
	n := r.int()
	if n < 0 || n >= store.MaxLimits {
		r.bad = true
		return ""
	}
	return numbers[n]
}

// result reads one operation's result.
func (r *reader) result(into *store.Result) {
	for k := range resultPieces {
		x := &resultPieces[k]
		if x.kind == limitKind {
			*(*string)(unsafe.Add(unsafe.Pointer(into), x.at)) = r.limit()
			continue
		}
		setInt(unsafe.Add(unsafe.Pointer(into), x.at), x.kind, r.int())
	}
}
