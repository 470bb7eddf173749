package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// toxic is a proxy of toxiproxy before a Redis.
type toxic struct{ proxy *toxiproxy.Proxy }

func startToxic(name, upstream string) (*toxic, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	t := &toxic{toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)}
	if err := t.proxy.Start(); err != nil {
		return nil, fmt.Errorf("start a proxy: %w", err)
	}
	return t, nil
}

func (t *toxic) addr() string { return t.proxy.Listen }

// attributes are those of a toxic.
type attributes map[string]any

// Streams of a toxic.
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
	if _, err := t.proxy.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
		return fmt.Errorf("toxic %s: %w", kind, err)
	}
	return nil
}

// clear removes all toxics.
func (t *toxic) clear() { t.proxy.Toxics.ResetToxics(context.Background()) }

// disable closes the port and all connections.
func (t *toxic) disable() { t.proxy.Stop() }

// enable opens the port again.
func (t *toxic) enable() error { return t.proxy.Start() }

func (t *toxic) stop() {
	t.clear()
	t.proxy.Stop()
}
