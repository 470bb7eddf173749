// Package wire is the protocol between a daemon and its remote callers: the bodies of requests and responses under
// /v1/store. Both ends use this package, and state its version.
//
// A caller says hello and becomes a client. It opens pools and applies operations to them. Batches are numbered, so
// that repeating one after a lost response does nothing twice. One response never ends: it reports which tickets
// have been decided.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Foresee asks what acquires would get; see [store.Foreseer].
type Foresee struct {
	Within time.Duration `json:"within"`
	Ops    []store.Op    `json:"ops"`
}

// Foreseen has the result of each operation of a Foresee.
type Foreseen struct {
	Results []store.Result `json:"results"`
}

// Version is the version of the bodies. The daemon refuses other versions. Version changes with the layout of
// operations and results, because the bodies do not describe their own layout. Raise base when the same layout gets
// another meaning.
var Version = versionOf(reflect.TypeFor[store.Op](), reflect.TypeFor[store.Result]())

const (
	base   = "2"
	layout = 0x37bf3792 // of the release that introduced base
)

// versionOf names the layout of types: base for that of the release, and base with a checksum for any other.
func versionOf(types ...reflect.Type) string {
	h := fnv.New32a()
	for _, t := range types {
		describe(h, t)
	}
	if h.Sum32() == layout {
		return base
	}
	return fmt.Sprintf("%s.%08x", base, h.Sum32())
}

// describe writes the structure of a type.
func describe(w io.Writer, t reflect.Type) {
	_, _ = fmt.Fprintf(w, "%v;", t.Kind()) // writing to a hash never fails
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			_, _ = fmt.Fprintf(w, "%s:", f.Name)
			describe(w, f.Type)
		}
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Array {
			_, _ = fmt.Fprintf(w, "%d;", t.Len())
		}
		describe(w, t.Elem())
	}
}

// VersionHeader is the header with the version of a request.
const VersionHeader = "Sluice-Store-Version"

// ContentType is the content type of bodies that are not JSON.
const ContentType = "application/vnd.sluice.store"

// How both ends detect that the other is gone
const (
	AliveEvery = 3 * time.Second  // how often a client sends a heartbeat
	GoneAfter  = 12 * time.Second // a client that is silent for this long loses what it has opened
	BeatEvery  = 4 * time.Second  // how often the endless response sends something
	QuietAfter = 15 * time.Second // an endless response that is silent for this long is broken
)

// EventLogHeader has the name of the event log that a daemon's report is made from and the labels of the stores whose
// events it counts, separated by spaces, in the answers of /v1/report and /v1/why. A client adds its own events if they
// are in another log or have another label.
const EventLogHeader = "Sluice-Event-Log"

// MaxBody bounds a request.
const MaxBody = 16 << 20

// Hello is the response to a new client.
type Hello struct {
	Client string `json:"client"`
	Books  bool   `json:"books"` // the daemon keeps the budgets too
}

// Opened is the response to opening a pool.
type Opened struct {
	Pool    int        `json:"pool"`    // its number among those of the client
	Session uint64     `json:"session"` // the session of its tickets
	Now     store.Time `json:"now"`
}

// Secret is a secret of the daemon's store. A request has the value to store if there is none yet.
type Secret struct {
	Name   string `json:"name"`
	Secret []byte `json:"secret"`
}

// ErrCorrupt is returned for data that this package has not written.
var ErrCorrupt = errors.New("the data is not what a gate of this version sends")

// AppendResults appends the results of operations.
func AppendResults(dst []byte, ops []store.Op) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ops)))
	for i := range ops {
		r := &ops[i].Result
		flags := byte(0)
		if r.Held {
			flags = 1
		}
		dst = append(dst, byte(r.State), flags, byte(r.Reason.Code), byte(r.Reason.Behind))
		dst = binary.AppendUvarint(dst, uint64(len(r.Reason.Limit)))
		dst = append(dst, r.Reason.Limit...)
		dst = binary.AppendUvarint(dst, r.ID.Session)
		dst = binary.AppendUvarint(dst, r.ID.N)
		for _, v := range [...]int64{int64(r.Now), int64(r.GrantedAt), int64(r.Waited), int64(r.Reason.At), r.Share} {
			dst = binary.AppendVarint(dst, v)
		}
	}
	return dst
}

// ReadResults reads the results of exactly as many operations.
func ReadResults(src []byte, ops []store.Op) error {
	r := reader{b: src}
	if r.uvarint() != uint64(len(ops)) {
		return ErrCorrupt
	}
	for i := range ops {
		fixed := r.bytes(4)
		if fixed == nil {
			return ErrCorrupt
		}
		res := store.Result{
			State: store.State(fixed[0]), Held: fixed[1] == 1,
			Reason: store.Reason{Code: store.Code(fixed[2]), Behind: store.Code(fixed[3]), Limit: r.text(store.MaxName)},
			ID:     store.ID{Session: r.uvarint(), N: r.uvarint()},
		}
		res.Now, res.GrantedAt, res.Waited = store.Time(r.varint()), store.Time(r.varint()), time.Duration(r.varint())
		res.Reason.At, res.Share = store.Time(r.varint()), r.varint()
		if !known(&res) {
			return ErrCorrupt
		}
		ops[i].Result = res
	}
	if r.bad || len(r.b) > 0 {
		return ErrCorrupt
	}
	return nil
}

// known reports whether a result is valid here.
func known(r *store.Result) bool {
	return r.State != store.NoResult && r.State <= store.Unknown && r.Reason.Code <= store.CodeSlowed && r.Reason.Behind <= store.CodeSlowed
}

// Notice says which tickets of a pool have been decided.
type Notice struct {
	Pool int
	All  bool // there were too many: check all waiting tickets
	IDs  []store.ID
}

// MaxNotice bounds the tickets in a notice.
const MaxNotice = 4096

// AppendNotice appends a notice. The zero Notice only shows that the stream is alive.
func AppendNotice(dst []byte, n *Notice) []byte {
	dst = binary.AppendUvarint(dst, uint64(n.Pool)) //nolint:gosec // pools are counted from 1
	all := byte(0)
	if n.All {
		all = 1
	}
	dst = append(dst, all)
	dst = binary.AppendUvarint(dst, uint64(len(n.IDs)))
	for _, id := range n.IDs {
		dst = binary.AppendUvarint(dst, id.Session)
		dst = binary.AppendUvarint(dst, id.N)
	}
	return dst
}

// ReadNotice reads the next notice.
func ReadNotice(r interface {
	io.Reader
	io.ByteReader
}) (n Notice, err error) {
	next := func() (v uint64) {
		if err == nil {
			v, err = binary.ReadUvarint(r)
		}
		return v
	}
	pool := next()
	if err != nil {
		return n, err
	}
	all, err := r.ReadByte()
	if err != nil {
		return n, err
	}
	count := next()
	if count > MaxNotice || all > 1 || pool > 1<<31 {
		return n, ErrCorrupt
	}
	n.Pool, n.All = int(pool), all == 1 //nolint:gosec // it is small
	n.IDs = make([]store.ID, count)
	for i := range n.IDs {
		n.IDs[i] = store.ID{Session: next(), N: next()}
	}
	return n, err
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) bytes(n int) []byte {
	if len(r.b) < n {
		r.b, r.bad = nil, true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

// text reads a string of at most most bytes.
func (r *reader) text(most uint64) string {
	n := r.uvarint()
	if n > most {
		r.b, r.bad = nil, true
		return ""
	}
	return string(r.bytes(int(n))) //nolint:gosec // at most most
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}
