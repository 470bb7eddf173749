package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/framing"
	"github.com/sluicehq/sluice/internal/loopback"
)

// Bounds on connections. Bodies and responses have no time limit.
const (
	headerWithin   = 30 * time.Second
	idleFor        = 2 * time.Minute
	maxHeaderBytes = 256 << 10
)

// ErrOpenToAll is the error for an address that other machines can reach while no tokens are configured.
var ErrOpenToAll = errors.New("can be reached from other machines, and there are no tokens: every client could use your API keys")

// ErrAddress is the error for an address that is neither HOST:PORT nor unix:PATH.
var ErrAddress = errors.New("is neither HOST:PORT nor unix:PATH")

// Listen opens an address: HOST:PORT, or unix:PATH. An address that other machines can reach needs tokens; guarded
// reports that tokens are configured.
func Listen(ctx context.Context, address string, guarded bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen: %q %w", address, ErrAddress)
	}
	if !guarded && !loopback.Host(host) {
		return nil, fmt.Errorf("listen: %q %w", address, ErrOpenToAll)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// listenUnix opens a socket that only its user can connect to. It replaces a socket that a dead process has left.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("listen: %s exists and is not a socket; use another path", path)
		}
		var d net.Dialer
		if c, err := d.DialContext(ctx, "unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("listen: another process already serves %s", path)
		} else if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("listen: %w", err)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// framed wraps a listener so that the server refuses requests that state their length twice.
func framed(l net.Listener) net.Listener {
	if _, ok := l.(secured); ok {
		return framing.ListenTLS(l, headerWithin)
	}
	return framing.Listen(l)
}

// Serve serves until ctx ends. Then it accepts no more requests and finishes the running ones. When cut ends, Serve
// closes every connection and cancels the requests that still run, which ends their tickets.
func (d *Daemon) Serve(ctx, cut context.Context, listeners ...net.Listener) error {
	// Closing a connection cancels a request only once its body was read. Canceling the base context reaches all.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return base },
		Handler:     d, ReadHeaderTimeout: headerWithin, IdleTimeout: idleFor, MaxHeaderBytes: maxHeaderBytes,
		Protocols: new(http.Protocols), ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true) // with TLS
	server.Protocols.SetUnencryptedHTTP2(true)
	defer d.watch()()
	failed := make(chan error, len(listeners)+len(d.beside))
	for _, l := range listeners {
		go func() { failed <- server.Serve(framed(l)) }()
	}
	for _, b := range d.beside {
		go func() { failed <- b.Serve(b.listener) }()
	}
	var err error
	running := len(listeners) + len(d.beside)
	select {
	case <-ctx.Done():
	case err = <-failed:
		running--
	}
	d.draining.Store(true)
	d.events.Close() // listeners would never leave
	if d.lent != nil {
		d.lent.Drain()
	}
	var others sync.WaitGroup
	others.Go(func() { d.now.Load().proxy.DrainSockets(cut) })
	for _, b := range d.beside {
		others.Go(func() { _ = b.Shutdown(cut) }) // it closes the remaining connections when cut ends
	}
	if down := server.Shutdown(cut); down != nil { // cut has ended
		cancel() // first, so that a waiting request does not take over from one that is cut off
		_ = server.Close()
	}
	others.Wait()
	for range running {
		<-failed
	}
	d.Settle()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if d.lent != nil {
		err = errors.Join(err, d.lent.Close())
	}
	return err
}
