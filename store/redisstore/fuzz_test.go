package redisstore

import (
	"errors"
	"reflect"
	"testing"

	"github.com/sluicehq/sluice/store"
)

// FuzzReply decodes any bytes as the reply to a batch, on the fast path and on the long one. Decoding must not panic, must
// not allocate more memory than the reply has bytes, and must give the same result twice.
func FuzzReply(f *testing.F) {
	one := appendInt(appendString(appendArray(nil, 9), "ok"), 1_700_000_000_000_000)
	for range 5 {
		one = appendInt(one, 1)
	}
	decided := appendInt(appendInt(appendArray(append([]byte{}, one...), 2), 5), 6)
	f.Add(string(decided), uint8(3), false)
	f.Add(string(appendInt(appendInt(appendInt(appendArray(append([]byte{}, one...), 0), 9), 9), 1)), uint8(3), false)
	f.Add(string(appendInt(appendString(appendArray(nil, 2), "none"), 1)), uint8(1), true)
	f.Add(string(append(append([]byte{}, one...), 0xdd, 0xff, 0xff, 0xff, 0xff)), uint8(1), false) // four billion tickets, of which none follows
	f.Add("\x99\xdb\xff\xff\xff\xff", uint8(1), true)
	f.Fuzz(func(t *testing.T, text string, n uint8, long bool) {
		first, r, err := replied(text, n, long)
		if len(r.decided) > len(text) {
			t.Errorf("%d bytes decide %d tickets", len(text), len(r.decided))
		}
		if err != nil {
			if !errors.Is(err, errGarbled) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		again, s, err := replied(text, n, long)
		if err != nil || !reflect.DeepEqual(first, again) || !reflect.DeepEqual(r, s) {
			t.Errorf("read again it is %+v, was %+v, %v", again, first, err)
		}
	})
}

// FuzzLists reads any bytes as the other answers of the script: the fields of a pool, and what processes state. What is
// taken is not longer than the answer, and what is garbled takes no more memory than it.
func FuzzLists(f *testing.F) {
	fields := appendString(appendString(appendInt(appendArray(nil, 3), 5), "v"), "meta")
	f.Add(string(fields))
	f.Add(string(appendString(appendString(appendString(appendInt(appendArray(nil, 4), 5), "7"), "41"), "12345678a spec")))
	f.Add("\xdd\xff\xff\xff\xff\x01")
	f.Add("\xdc\xff\xff\x01\xa1a")
	f.Fuzz(func(t *testing.T, text string) {
		_, fields, ok := readFields(text)
		size := 0
		for name, value := range fields {
			size += len(name) + len(value)
		}
		if ok && size > len(text) || len(fields) > len(text)+1 {
			t.Errorf("%d bytes have %d fields of %d bytes (%v)", len(text), len(fields), size, ok)
		}
		_, _, list, ok := readStatements(text)
		size = 0
		for i := range list {
			size += len(list[i].text)
			_, _ = list[i].spec() // any bytes, too
		}
		if ok && size > len(text) || len(list) > len(text) {
			t.Errorf("%d bytes have %d statements of %d bytes (%v)", len(text), len(list), size, ok)
		}
	})
}

// replied is a batch of some operations with an answer to it.
func replied(text string, n uint8, long bool) ([]store.Op, reply, error) {
	ops := make([]store.Op, n%8)
	b := &call{form: batch{long: long}, reqs: []*request{{ops: ops}}}
	for i := range ops {
		ops[i] = store.Op{Kind: store.OpAcquire, Agent: "a"}
		if i%3 == 2 {
			ops[i] = store.Op{Kind: store.OpClose, ID: store.ID{Session: 1, N: uint64(i)}}
		}
		b.form.add(&ops[i], i == 0)
	}
	b.form.bytes()
	r, err := b.read(text)
	return ops, r, err
}

// A reply that announced four billion elements and then ended allocated all memory.
func TestAListThatIsNotThereTakesNoMemory(t *testing.T) {
	t.Parallel()
	head := appendInt(appendString(appendArray(nil, 9), "ok"), 1)
	for range 5 {
		head = appendInt(head, 1)
	}
	_, r, err := replied(string(append(head, 0xdd, 0xff, 0xff, 0xff, 0xff)), 1, false)
	if !errors.Is(err, errGarbled) || len(r.decided) > 1 {
		t.Errorf("%d tickets, %v", len(r.decided), err)
	}
	in := reader{b: []byte{0xdd, 0xff, 0xff, 0xff, 0xff, 1}}
	if n := in.array(); n != 0 || !in.bad {
		t.Errorf("a list of %d", n)
	}
}
