package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// toxic is a toxiproxy in front of the store.
type toxic struct {
	proxy    *toxiproxy.Proxy
	listen   string
	upstream string
	replaced int // times that it was stuck and replaced
}

// unstuck is how long toxiproxy may take to remove a toxic or to stop. It can get stuck forever when a client has
// closed a connection whose data it holds back. Then a new proxy replaces it.
const unstuck = 3 * time.Second

func startToxic(upstream string) (*toxic, error) {
	t := &toxic{listen: "127.0.0.1:0", upstream: upstream}
	return t, t.start()
}

// start starts a proxy without toxics.
func (t *toxic) start() error {
	zerolog.SetGlobalLevel(zerolog.Disabled) // some of its parts log by default
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, "redis", t.listen, t.upstream)
	if err := proxy.Start(); err != nil {
		return fmt.Errorf("start a proxy: %w", err)
	}
	t.proxy, t.listen = proxy, proxy.Listen
	return nil
}

func (t *toxic) addr() string { return t.listen }

// inTime runs do and reports whether it returned within unstuck. Otherwise do may run forever.
func inTime(do func()) bool {
	done := make(chan struct{})
	go func() {
		do()
		close(done)
	}()
	timer := time.NewTimer(unstuck)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// attributes are the attributes of a toxic.
type attributes map[string]any

// Directions of a toxic.
const (
	toServer = "upstream"
	toClient = "downstream"
)

// add adds a toxic to one direction.
func (t *toxic) add(kind, stream string, a attributes) error {
	text, err := json.Marshal(map[string]any{"type": kind, "stream": stream, "attributes": a})
	if err != nil {
		return err
	}
	for range 2 {
		proxy, failed := t.proxy, error(nil)
		if inTime(func() { _, failed = proxy.Toxics.AddToxicJson(bytes.NewReader(text)) }) {
			if failed != nil {
				return fmt.Errorf("toxic %s: %w", kind, failed)
			}
			return nil
		}
		if err := t.replace(); err != nil {
			return err
		}
	}
	return fmt.Errorf("toxic %s: toxiproxy is stuck", kind)
}

// clear removes all toxics.
func (t *toxic) clear() error {
	proxy := t.proxy
	if inTime(func() { proxy.Toxics.ResetToxics(context.Background()) }) {
		return nil
	}
	return t.replace()
}

// replace replaces a proxy that is stuck.
func (t *toxic) replace() error {
	t.replaced++
	t.disable()
	return t.enable()
}

// disable closes the port and all connections. Connections of a stuck proxy stay open, but nothing passes.
func (t *toxic) disable() {
	proxy := t.proxy
	_ = inTime(proxy.Stop) // Stop closes the port at once even if it gets stuck
}

// enable opens the port again, with a new proxy.
func (t *toxic) enable() error {
	var err error
	for end := time.Now().Add(unstuck); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = t.start(); err == nil {
			return nil
		}
	}
	return err
}

func (t *toxic) stop() { t.disable() }
