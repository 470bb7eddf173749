package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/sluicehq/sluice/store"
)

// FuzzReadResults reads arbitrary answers of a daemon. Either the whole answer is refused, or every result is valid
// and encodes to the same bytes.
func FuzzReadResults(f *testing.F) {
	ops := []store.Op{
		{Result: store.Result{State: store.Granted, ID: store.ID{Session: 7, N: 1}, Now: 1_700_000_000_000_000, GrantedAt: 1_700_000_000_000_000}},
		{Result: store.Result{State: store.Refused, Held: true, Now: -1, Waited: -5, Reason: store.Reason{Code: store.CodeDeadline, Behind: store.CodeLimit, Limit: "minute", At: 9}, Share: 12}},
	}
	whole := AppendResults(nil, ops)
	f.Add(whole, uint8(2))
	f.Add(whole, uint8(1))
	f.Add(whole[:len(whole)-1], uint8(2))
	f.Add(AppendResults(nil, nil), uint8(0))
	f.Add([]byte{1, 200, 1, 200, 200, 100, 1, 1, 2, 2, 2, 2, 2}, uint8(1))
	f.Fuzz(func(t *testing.T, src []byte, n uint8) {
		ops := make([]store.Op, n%16)
		if err := ReadResults(src, ops); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		for _, op := range ops {
			r := op.Result
			if r.State == store.NoResult || r.State > store.Unknown || r.Reason.Code > store.CodeSlowed || r.Reason.Behind > store.CodeSlowed || len(r.Reason.Limit) > store.MaxName {
				t.Errorf("no daemon sends %+v", r)
			}
		}
		again := make([]store.Op, len(ops))
		if err := ReadResults(AppendResults(nil, ops), again); err != nil || !reflect.DeepEqual(ops, again) {
			t.Errorf("written again it is %+v, was %+v, %v", again, ops, err)
		}
	})
}

// FuzzReadNotice reads arbitrary streams of notices. Each is bounded and encodes to the same bytes.
func FuzzReadNotice(f *testing.F) {
	f.Add(AppendNotice(AppendNotice(nil, &Notice{}), &Notice{Pool: 3, IDs: []store.ID{{Session: 1, N: 2}, {Session: 1 << 60, N: 1 << 40}}}))
	f.Add(AppendNotice(nil, &Notice{Pool: 1, All: true}))
	f.Add([]byte{1, 0, 255, 31})
	f.Add([]byte{1, 2, 0})
	f.Fuzz(func(t *testing.T, src []byte) {
		in := bytes.NewReader(src)
		for {
			before := in.Len()
			n, err := ReadNotice(in)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && err.Error() != "binary: varint overflows a 64-bit integer" {
					t.Errorf("the error is %v", err)
				}
				if len(n.IDs) > MaxNotice {
					t.Errorf("%d tickets", len(n.IDs))
				}
				return
			}
			if in.Len() >= before || n.Pool < 0 || len(n.IDs) > MaxNotice {
				t.Fatalf("%d of %d bytes left, pool %d, %d tickets", in.Len(), before, n.Pool, len(n.IDs))
			}
			again, err := ReadNotice(bytes.NewReader(AppendNotice(nil, &n)))
			if err != nil || !reflect.DeepEqual(n, again) {
				t.Errorf("written again it is %+v, was %+v, %v", again, n, err)
			}
		}
	})
}
