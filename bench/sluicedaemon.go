//go:build !peersonly

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/store/redisstore"
	_ "github.com/sluicehq/sluice/store/remotestore" // for the machines behind a daemon
)

func init() { openProxy, openLender = openUsedProxy, lend }

// lend lends a Redis to machines, as sluice serve does. It returns the address that the machines use as their store.
func lend(ctx context.Context, url string) (address string, stop func() error, err error) {
	st, err := redisstore.Open(ctx, url)
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, st.Close())
	}
	lent := storeapi.New(storeapi.Options{Store: st, Identify: func(*http.Request) (api.Identity, error) { return api.Identity{}, nil }})
	server := &http.Server{Handler: lent, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends with Close
	}()
	return "http://" + listener.Addr().String(), func() error {
		lent.Drain()
		err := server.Close()
		<-done
		return errors.Join(err, lent.Close(), st.Close())
	}, nil
}

// openUsedProxy opens one gate with many callers, as the proxy of a daemon has.
func openUsedProxy(ctx context.Context, url string, machines int) ([]machine, error) {
	f, err := openFleet(ctx, url, machines)
	if err != nil {
		return nil, err
	}
	all := make([]machine, machines)
	for i := range all {
		all[i] = machine{
			ticket: func(ctx context.Context) error { return errors.Join(f.take(ctx, i), f.end(i)) },
			close:  func() {},
		}
	}
	all[0].close = func() { _ = f.gate.Close() }
	return all, nil
}
