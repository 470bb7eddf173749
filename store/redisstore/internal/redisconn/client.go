package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// pingGap is how long a connection may be idle before it is sent a PING.
	//
	// A server may accept bytes and never reply, because it is stopped or the network drops packets. A call then returns
	// by its deadline and gives up its connection; the next call dials anew. A connection that waits for messages is given
	// up at most 2 x pingGap + Timeout after it died. The system, or the next call, finds idle dead connections. When the
	// server resumes, it serves calls at once.
	pingGap = time.Second

	// refreshGap is how often rueidis asks the sentinels for the master, in case their message was missed: a demoted master
	// stays alive, so nothing else tells.
	refreshGap = 3 * time.Second

	// renewGap is the shortest time between renewals of the connections to a server that takes no writes.
	renewGap = time.Second

	maxWires = 16          // connections for calls
	idleFor  = time.Minute // after which an unused connection is closed

	ringScale = 9 // of the queue of a connection: 512 calls
	// maxCalls bounds the calls under way, so that the queue of a connection never fills: a full queue ignores contexts.
	// After a failure it may hold maxCalls calls whose callers have left, as many new ones, and some of rueidis' own.
	maxCalls   = 1<<(ringScale-1) - 16
	bufferSize = 32 << 10 // each way; a batch and its reply are smaller
	maxMoves   = 8        // redirections followed for one call
	clientName = "sluice" // as CLIENT LIST shows it
)

// options returns the options of rueidis for the address.
func (l *Link) options() (rueidis.ClientOption, error) {
	a := l.address
	o := rueidis.ClientOption{
		InitAddress: a.Hosts,
		Username:    a.User,
		Password:    a.Password(),
		SelectDB:    a.DB,
		ClientName:  clientName,
		Dialer:      net.Dialer{Timeout: a.Timeout, KeepAlive: pingGap},
		DialCtxFn:   l.wires.dial,

		ConnWriteTimeout: a.Timeout,

		// A connection carries one call at a time, and the caller writes and reads it itself. The store combines concurrent
		// requests into one call, so few calls are under way, and a pipeline's hand-over between goroutines would cost each
		// call a fifth of its time.
		DisableAutoPipelining: true,
		BlockingPoolSize:      maxWires,
		BlockingPoolCleanup:   idleFor,
		RingScaleEachConn:     ringScale,

		ReadBufferEachConn:  bufferSize,
		WriteBufferEachConn: bufferSize,

		DisableCache:  true, // scripts cannot be cached
		DisableRetry:  true, // the callers know which calls may be repeated
		ClientSetInfo: rueidis.DisableClientSetInfo,

		ForceSingleClient: a.Mode == Single,
		ClusterOption:     rueidis.ClusterOption{MaxMovedRedirections: maxMoves},
	}
	if a.TLS {
		c, err := a.TLSConfig()
		if err != nil {
			return o, err
		}
		o.TLSConfig = c
	}
	if a.Mode == Sentinel {
		o.Sentinel = rueidis.SentinelOption{
			Dialer:                  o.Dialer,
			TLSConfig:               o.TLSConfig,
			MasterSet:               a.Master,
			Username:                a.SentinelUser,
			Password:                a.SentinelPassword(),
			ClientName:              clientName,
			TopologyRefreshInterval: refreshGap,
		}
	}
	return o, nil
}

// wires tracks the open connections of a link, so that closing it need not wait for a server that does not reply.
type wires struct {
	life    context.Context // ends when the link is closed; dial then refuses
	unix    bool
	timeout time.Duration

	// calm reports that the last call was answered and no connection was closed since.
	calm atomic.Bool

	mu      sync.Mutex
	open    map[*wire]struct{} // nil after cut
	renewed time.Time          // when renew last closed them
}

// wire is a connection that does not wait forever for a reply. rueidis bounds reads only for calls; on the connection for
// messages it relies on PINGs, which takes longer.
type wire struct {
	net.Conn
	of *wires

	mu    sync.Mutex
	until time.Time // the deadline that rueidis has set
	due   time.Time // when a reply is due; zero: none is
}

func (w *wire) Write(b []byte) (int, error) {
	w.owe(true)
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.owe(false)
	}
	return n, err
}

// owe sets the read deadline after a write, and clears it after a read.
func (w *wire) owe(owes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if owes == !w.due.IsZero() {
		return
	}
	if !owes {
		w.due = time.Time{}
	} else if w.due = time.Now().Add(w.of.timeout); !w.until.IsZero() && !w.due.Before(w.until) {
		w.due = time.Time{} // rueidis' deadline comes first
		return
	}
	_ = w.applyDeadline() // fails only on a closed connection, as the next read will
}

// SetDeadline implements [net.Conn]. rueidis calls it when one caller uses the connection alone.
func (w *wire) SetDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = t
	if err := w.applyDeadline(); err != nil {
		return err
	}
	return w.Conn.SetWriteDeadline(t)
}

// applyDeadline sets the earlier of both deadlines for reads.
func (w *wire) applyDeadline() error {
	t := w.until
	if !w.due.IsZero() && (t.IsZero() || w.due.Before(t)) {
		t = w.due
	}
	return w.Conn.SetReadDeadline(t)
}

// Close closes the connection. It may be called more than once.
func (w *wire) Close() error {
	w.of.calm.Store(false) // before rueidis dials again, because calls would wait for that
	w.of.mu.Lock()
	delete(w.of.open, w)
	w.of.mu.Unlock()
	return w.Conn.Close()
}

// dial connects. Its context is not that of a caller, because callers share the connection.
func (ws *wires) dial(ctx context.Context, address string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	defer context.AfterFunc(ws.life, cancel)()

	network := "tcp"
	if ws.unix {
		network = "unix"
	}
	conn, err := d.DialContext(ctx, network, address)
	if err == nil && config != nil {
		conn, err = handshake(ctx, conn, address, config)
	}
	if ws.life.Err() != nil {
		err = errors.Join(ErrClosed, err)
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return nil, err
	}
	w := &wire{Conn: conn, of: ws}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.open == nil {
		_ = conn.Close()
		return nil, ErrClosed
	}
	ws.open[w] = struct{}{}
	return w, nil
}

// handshake starts TLS. It closes raw if that fails.
func handshake(ctx context.Context, raw net.Conn, address string, config *tls.Config) (net.Conn, error) {
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			_ = raw.Close()
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// cut closes all connections for good.
func (ws *wires) cut() {
	ws.mu.Lock()
	open := ws.open
	ws.open = nil
	ws.mu.Unlock()
	for w := range open {
		w.cut()
	}
}

// renew closes all connections, so that rueidis dials new ones, and reports whether it did. Within renewGap it does so
// once, because all callers fail for the same reason.
func (ws *wires) renew() bool {
	ws.mu.Lock()
	if time.Since(ws.renewed) < renewGap {
		ws.mu.Unlock()
		return false
	}
	ws.renewed = time.Now()
	open := maps.Clone(ws.open)
	ws.mu.Unlock()
	for w := range open {
		w.cut()
	}
	return true
}

// cut is Close for a connection that may be stuck: closing a TLS connection waits to send an alert.
func (w *wire) cut() {
	if c, ok := w.Conn.(*tls.Conn); ok {
		_ = c.NetConn().Close()
	}
	_ = w.Close()
}
