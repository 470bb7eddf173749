package deadletter

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzEntry reads any file as a dead letter of either kind, with and without a key. The entry says why it cannot be
// read, or survives being written again.
func FuzzEntry(f *testing.F) {
	const id = "0123456789ab"
	keyed := &List{}
	if err := keyed.SetKey(strings.Repeat("5a", 32)); err != nil {
		f.Fatal(err)
	}
	for _, e := range []Entry{
		{ID: id, Argv: Texts([]string{"curl", "\xff"}), Dir: "/", Attempts: 6, Waits: []Wait{{Attempt: 2, Waited: 5e6, Why: "backoff"}}},
		{ID: id, Request: &Request{Method: "POST", Path: "/v1/messages", Body: `{"model":"m"}`}},
	} {
		for _, l := range []*List{{}, keyed} {
			text, err := l.encode(&e)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text, e.Request != nil)
		}
	}
	f.Add([]byte(`{"id":"0123456789ab","sealed":"rot13","nonce":"","data":""}`), true)
	f.Add([]byte(`{"id":"0123456789ab","wait_ms":9223372036854775807,"argv":["a"]}`), false)
	f.Add([]byte(`{"id":"other","argv":["a"]}`), false)
	f.Fuzz(func(t *testing.T, text []byte, request bool) {
		at := stored{id: id, kind: Command}
		if request {
			at.kind = HTTP
		}
		for _, l := range []*List{{}, keyed} {
			e := l.decode(at, text)
			if e.ID != id || e.Damaged == "" && (e.empty() || e.Kind() != at.kind) {
				t.Fatalf("an entry that is none: %+v", e)
			}
			if e.Damaged != "" {
				continue
			}
			again, err := l.encode(&e) // which leaves out waits and answers that are too many
			if err != nil {
				continue // a time out of range
			}
			if back := l.decode(at, again); !reflect.DeepEqual(back, e) {
				t.Errorf("written again it is %+v, was %+v", back, e)
			}
		}
	})
}
