// Package redisstore keeps pools in Redis or Valkey, so that callers on many machines share them: on one server from
// version 6.2 on, in a Cluster, or behind Sentinels.
//
// It keeps the log that processes share; package logstore makes a store of it. Importing the package registers the schemes
// redis:, rediss:, redis+cluster:, redis+sentinel: and their variants.
//
// # Keys
//
// All keys of a pool begin with PREFIX:{POOL} and share a slot of a Cluster. A name's } and % are written %7D and %25.
//
//	             hash: the incarnation, its segment, its snapshot, and where it came from
//	s:INC:SEG    string: the segment, a header and entries (see package sharedlog)
//	e:INC:SEG    the same, ended; expires after 10 s
//	n:NUMBER     string: a snapshot; one that is not the log's expires after a minute
//	c:INC:SEG    a claim on the next snapshot; expires
//	post         hash: positions of survivors of a lost log; expires after 2 s
//
// After Keep the hash, the segment, its snapshot and the sorted set expire too, unless it is called again.
//
// The names of a segment hold its incarnation, so a process that slept cannot append to a newer one. APPEND makes a key that is
// missing; the script sees that by the length, and deletes it. An append travels with a GETRANGE of what lies between in
// one pipeline: Lua would copy it.
//
// The key PREFIX:secret:NAME holds a secret of all processes.
//
// Wake-ups are messages on the channel PREFIX:{POOL}:w:PROCESS, and on PREFIX:{POOL}:w for all that use the pool: a process
// that finds no log asks there whether others know one.
//
// # Rights
//
// A user with the least rights:
//
//	ACL SETUSER name >password resetkeys ~PREFIX:* resetchannels &PREFIX:* -@all
//	    +eval +evalsha +time +append +getrange +strlen +exists +get +set +del +rename +renamenx +pexpire +persist +pttl
//	    +hmget +hset +hgetall +scan +publish +subscribe +unsubscribe
//	    +ping +hello +auth +select +client|setname +cluster|shards +cluster|slots +asking +info
//
// By INFO it knows whether the server is still the one on which a log began, and whether it evicts keys. Behind Sentinels the same user needs +role, and one for the Sentinels
// needs +sentinel|get-master-addr-by-name, +sentinel|sentinels and +subscribe there. Before Redis 7, which knows no rights
// for parts of a command, give +client and +cluster.
//
// # Settings of the server
//
// The policy maxmemory-policy must be noeviction, or keys of a log may be deleted to make room: that loses the log, and is
// reported as [sharedlog.ErrEvicted]. Without persistence a restart loses it too; processes that know it heal it.
package redisstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sluicehq/sluice/internal/redisurl"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

func init() {
	for _, scheme := range redisurl.Schemes() {
		store.Register(scheme, func(ctx context.Context, url string) (store.Store, error) { return Open(ctx, url) })
	}
}

// Open connects to the Redis at a URL. Close the store to close its connections.
func Open(ctx context.Context, url string, opts ...logstore.Option) (*logstore.Store, error) {
	if _, err := redisurl.Parse(url); err != nil {
		return nil, err
	}
	engine, err := OpenEngine(ctx, url)
	if err != nil {
		return nil, logstore.Unavailable(err)
	}
	if dir, err := statedir.Default(); err == nil {
		opts = append([]logstore.Option{logstore.WithMemory(filepath.Join(dir, "redis"), engine.identity())}, opts...)
	}
	return logstore.New(engine, opts...), nil
}

// identity names the server and the prefix, without passwords.
func (e *Engine) identity() string {
	a := &e.address
	return fmt.Sprintf("%v %q %d %q %q", a.Mode, a.Hosts, a.DB, a.Master, a.Prefix)
}

// Engine keeps logs in one Redis. It implements [sharedlog.Engine].
type Engine struct{ *conn }

var _ sharedlog.Engine = (*Engine)(nil)

// OpenEngine connects to the Redis at a URL (see [redisurl.Parse]) and checks that it can keep logs.
func OpenEngine(ctx context.Context, url string) (*Engine, error) {
	address, err := redisurl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sharedlog.ErrUnfit, err)
	}
	c, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Engine{c}, nil
}

// Log implements [sharedlog.Engine].
func (e *Engine) Log(pool string) sharedlog.Log {
	l := &log{conn: e.conn}
	l.base = e.base(pool)
	if len(pool) > sharedlog.MaxPool {
		l.bad = fmt.Errorf("%w: the name of a pool has %d bytes", sharedlog.ErrTooBig, len(pool))
	}
	return l
}

// headOf is the key of the hash that names what a log consists of.
func (e *Engine) headOf(pool string) string { return e.address.Prefix + ":{" + escape(pool) + "}" }

// base begins all other keys of a pool.
func (e *Engine) base(pool string) string { return e.headOf(pool) + ":" }

// Close implements [sharedlog.Engine].
func (e *Engine) Close() error {
	e.shut()
	return nil
}

// log is the log of one pool.
type log struct {
	*conn
	base string // begins all keys but the first
	bad  error  // about the name of the pool
	last atomic.Pointer[segment]
	// missed is when this process found first that there is no log; 0: there is one.
	missed atomic.Int64
	// looked is how many connections there were when this process last saw that the server is the one on which the
	// incarnation began.
	looked atomic.Int64
}

var _ sharedlog.Log = (*log)(nil)

func (l *log) head() string  { return strings.TrimSuffix(l.base, ":") }
func (l *log) posts() string { return l.base + "post" }

func (l *log) key(kind string, incarnation uint64, segment int64) string {
	return l.base + kind + strconv.FormatUint(incarnation, 36) + ":" + strconv.FormatInt(segment, 36)
}

func (l *log) channel(process uint64) string {
	return l.base + "w:" + strconv.FormatUint(process, 10)
}

// everybody is the channel of all processes that use the pool.
func (l *log) everybody() string { return l.base + "w" }

// segment is what this process knows of one.
type segment struct {
	incarnation uint64
	begin       int64
	key         string
	length      atomic.Int64 // when it last appended
}

// segment returns the segment of at. Nearly always it is that of the last call.
func (l *log) segment(at sharedlog.Position) *segment {
	s := l.last.Load()
	if s == nil || s.incarnation != at.Incarnation || s.begin != at.Segment {
		s = &segment{incarnation: at.Incarnation, begin: at.Segment, key: l.key("s:", at.Incarnation, at.Segment)}
		l.last.Store(s)
	}
	return s
}
