package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisfault"
	"github.com/sluicehq/sluice/internal/redisurl"
	"github.com/sluicehq/sluice/store"
)

const (
	// keepAlive is how long a connection may be idle before it is sent a PING. A connection that waits for wake-ups is given
	// up twice that, and the timeout, after it died.
	keepAlive = 5 * time.Second
	// refreshGap is how often rueidis asks the sentinels for the master, in case it missed their message.
	refreshGap = 3 * time.Second
	// renewGap is the shortest time between renewals of the connections to a server that takes no writes.
	renewGap   = time.Second
	bufferSize = 64 << 10 // each way
	maxMoves   = 8        // redirections followed for one call
	clientName = "sluice" // as CLIENT LIST shows it
)

// conn is the connections of one process to Redis: one that all calls share, and one for wake-ups.
type conn struct {
	address redisurl.Address
	name    string // the address, for error texts
	client  rueidis.Client
	life    context.Context // ends when conn is closed
	end     context.CancelFunc
	time    func() store.Time // instead of the server's clock, in tests; nil: that clock
	// calm reports that the last call was answered and no connection was closed since: calls then return in time by
	// themselves. In a cluster one flag cannot tell for many connections.
	calm  atomic.Bool
	dials atomic.Int64   // connections made so far; another server can be at the end of a new one
	taken atomic.Bool    // a call has the client for itself, see lane
	busy  sync.WaitGroup // calls and watches

	mu      sync.Mutex
	ended   bool
	open    map[*wire]struct{}
	renewed time.Time // when renew last closed them
	ear     *ear
	watched map[string]int // channels, by how many watch them
}

// dial connects and checks the server.
func dial(ctx context.Context, a redisurl.Address) (*conn, error) {
	c := &conn{address: a, name: a.String(), open: map[*wire]struct{}{}, watched: map[string]int{}}
	c.life, c.end = context.WithCancel(context.Background())
	made := make(chan error, 1)
	go func() { // rueidis takes no context for that
		var err error
		c.client, err = c.newClient() // may be set even with an error, and then has to be closed
		made <- err
	}()
	var err error
	select {
	case err = <-made:
		if err == nil {
			err = c.probe(ctx)
		} else {
			err = c.fail(err)
		}
	case <-ctx.Done():
		c.cut()
		<-made
		err = c.fail(ctx.Err())
	}
	if err != nil {
		c.shut()
		return nil, err
	}
	return c, nil
}

// newClient returns a client whose calls share one connection to each server.
func (c *conn) newClient() (rueidis.Client, error) {
	a := c.address
	o := rueidis.ClientOption{
		InitAddress:         a.Hosts,
		Username:            a.User,
		Password:            a.Password(),
		SelectDB:            a.DB,
		ClientName:          clientName,
		Dialer:              net.Dialer{Timeout: a.Timeout, KeepAlive: keepAlive},
		DialCtxFn:           c.dial,
		ConnWriteTimeout:    a.Timeout,
		PipelineMultiplex:   -1,
		ReadBufferEachConn:  bufferSize,
		WriteBufferEachConn: bufferSize,
		DisableCache:        true,
		DisableRetry:        true, // an append must not be repeated unknown to its caller
		ClientSetInfo:       rueidis.DisableClientSetInfo,
		ForceSingleClient:   a.Mode == redisurl.Single,
		ClusterOption:       rueidis.ClusterOption{MaxMovedRedirections: maxMoves},
	}
	if a.TLS {
		var err error
		if o.TLSConfig, err = a.TLSConfig(); err != nil {
			return nil, c.unfit(err.Error(), "correct the file, or the parameter that names it")
		}
	}
	if a.Mode == redisurl.Sentinel {
		o.Sentinel = rueidis.SentinelOption{
			Dialer: o.Dialer, TLSConfig: o.TLSConfig, MasterSet: a.Master, Username: a.SentinelUser, Password: a.SentinelPassword(),
			ClientName: clientName, TopologyRefreshInterval: refreshGap,
		}
	}
	return rueidis.NewClient(o)
}

// dial connects to one server. Its context is not that of a caller, because callers share the connection.
func (c *conn) dial(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	network := "tcp"
	if c.address.Unix() {
		network = "unix"
	}
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, c.gone(err)
	}
	w := &wire{Conn: raw, raw: raw, of: c}
	if config != nil {
		if config.ServerName == "" {
			host, _, _ := net.SplitHostPort(address)
			config = config.Clone()
			config.ServerName = host
		}
		secure := tls.Client(raw, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, c.gone(err)
		}
		w.Conn = secure
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		_ = raw.Close()
		return nil, redisfault.ErrClosed
	}
	c.open[w] = struct{}{}
	c.dials.Add(1)
	return w, nil
}

// gone is err, or that of a closed conn.
func (c *conn) gone(err error) error {
	if c.life.Err() != nil {
		return redisfault.ErrClosed
	}
	return err
}

// wire is a connection that conn can cut.
type wire struct {
	net.Conn
	raw net.Conn // below TLS, which would wait to say goodbye
	of  *conn
}

// Close closes the connection. It may be called more than once.
func (w *wire) Close() error {
	w.of.calm.Store(false) // before rueidis dials again, because calls would wait for that
	w.of.mu.Lock()
	delete(w.of.open, w)
	w.of.mu.Unlock()
	return w.raw.Close()
}

// cut closes all connections for good.
func (c *conn) cut() {
	c.end()
	c.mu.Lock()
	open := c.open
	c.open, c.ended = map[*wire]struct{}{}, true
	c.mu.Unlock()
	for w := range open {
		_ = w.Close()
	}
}

// renew closes all connections, so that rueidis dials new ones: a host name or an address may stand for the current master,
// and have moved to another server. It does so once a renewGap, because all callers fail for the same reason.
func (c *conn) renew() {
	c.mu.Lock()
	if time.Since(c.renewed) < renewGap {
		c.mu.Unlock()
		return
	}
	c.renewed = time.Now()
	open := maps.Clone(c.open)
	c.mu.Unlock()
	for w := range open {
		_ = w.Close()
	}
}

// shut ends all calls and watches.
func (c *conn) shut() {
	c.cut()
	c.mu.Lock()
	e := c.ear
	c.mu.Unlock()
	if e != nil {
		if <-e.ready; e.err == nil {
			e.client.Close()
		}
	}
	if c.client != nil {
		c.client.Close()
	}
	c.busy.Wait()
}

// bounded is a context with a deadline for the connection and no timer. rueidis sends a command without a hand-over between
// goroutines, which costs a call a third of its time, only if its context has a deadline.
type bounded struct {
	context.Context
	at time.Time
}

func (b bounded) Deadline() (time.Time, bool) { return b.at, true }

// lane returns the client for a call, and what to do after it. As soon as two calls overlap on a connection, rueidis hands all later
// ones of that connection over between goroutines, which costs a lone caller a third of its time. So a call that meets another one
// goes by the connection for wake-ups, if that is there.
func (c *conn) lane() (client rueidis.Client, own bool, end func()) {
	if c.address.Mode != redisurl.Single || c.taken.CompareAndSwap(false, true) {
		return c.client, true, func() { c.taken.Store(false) }
	}
	c.mu.Lock()
	e := c.ear
	c.mu.Unlock()
	if e != nil {
		select {
		case <-e.ready:
			if e.err == nil {
				return e.client, false, func() {}
			}
		default:
		}
	}
	return c.client, false, func() {}
}

// do sends commands in one round trip. It returns when ctx ends: at a deadline at once, after a cancellation perhaps only
// at the timeout of the connection.
func (c *conn) do(ctx context.Context, commands ...rueidis.Completed) ([]rueidis.RedisResult, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	client, own, end := c.lane()
	if own && c.calm.Load() && c.address.Mode != redisurl.Cluster {
		if _, ok := ctx.Deadline(); !ok && ctx.Done() != nil {
			ctx = bounded{ctx, time.Now().Add(c.address.Timeout)}
		}
		defer c.busy.Done()
		defer end()
		return c.sent(client.DoMulti(ctx, commands...))
	}
	type outcome struct {
		results []rueidis.RedisResult
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		defer c.busy.Done()
		defer end()
		results, err := c.sent(client.DoMulti(context.Background(), commands...))
		done <- outcome{results, err}
	}()
	select {
	case o := <-done:
		return o.results, o.err
	case <-ctx.Done():
		return nil, c.fail(ctx.Err())
	}
}

// enter counts a call.
func (c *conn) enter(ctx context.Context) error {
	if ctx.Err() != nil && c.life.Err() == nil {
		return c.fail(ctx.Err())
	}
	c.mu.Lock()
	ended := c.ended
	if !ended {
		c.busy.Add(1)
	}
	c.mu.Unlock()
	if ended {
		return c.fail(redisfault.ErrClosed)
	}
	return nil
}

// sent returns the error that the results share if there was no reply.
func (c *conn) sent(results []rueidis.RedisResult) ([]rueidis.RedisResult, error) {
	for i := range results {
		if err := results[i].NonRedisError(); err != nil {
			c.calm.Store(false)
			return nil, c.fail(err)
		}
	}
	if !c.calm.Load() {
		c.calm.Store(true)
	}
	return results, nil
}

// probe checks the server: its version and kind, Lua, and the rights of the user.
func (c *conn) probe(ctx context.Context) error {
	cluster := c.address.Mode == redisurl.Cluster
	if cluster && c.client.Mode() != rueidis.ClientModeCluster {
		return c.unfit("this Redis is not part of a cluster", "use redis:// for a single server")
	}
	const source = "redis.call('TIME') redis.call('EXISTS', KEYS[1]) return struct.pack('<I7', 1)"
	key := c.address.Prefix + ":probe"
	got, err := c.do(ctx, c.client.B().Arbitrary("HELLO").Build(), c.client.B().Eval().Script(source).Numkeys(1).Key(key).Build())
	if err != nil {
		return err
	}
	said, err := got[0].AsMap()
	if err != nil {
		return c.refused(err)
	}
	field := func(name string) string { m := said[name]; s, _ := m.ToString(); return s }
	var major, minor int
	_, _ = fmt.Sscanf(field("version"), "%d.%d", &major, &minor)
	switch {
	case major < 6 || major == 6 && minor < 2 && field("server") == "redis":
		return c.unfit(fmt.Sprintf("%s %s is too old: %s or later is needed", field("server"), field("version"), redisfault.Oldest), "update it, or use another")
	case field("mode") == "sentinel":
		return c.unfit("this is a sentinel, which holds no data", "use redis+sentinel://host:port/MASTER")
	case field("mode") == "cluster" && c.address.Mode == redisurl.Single:
		return c.unfit("this Redis is part of a cluster", "use redis+cluster://host:port")
	}
	if err := got[1].Error(); err != nil {
		if v := redisfault.Judge(err); v.Fault == redisfault.Script {
			return c.unfit(redisfault.NoLua.What, redisfault.NoLua.Hint)
		}
		return c.refused(err)
	}
	return nil
}

// replied reports whether err is an error reply that begins with word.
func replied(err error, word string) bool {
	reply, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && strings.HasPrefix(reply.Error(), word)
}
