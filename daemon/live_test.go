package daemon_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// A reload and a shutdown let the response of a realtime connection finish, and then close the connection.
func TestRealtimeConnectionsAreDrained(t *testing.T) {
	const text = "resources:\n  openai: {provider: openai, upstream: \"${UPSTREAM}\", limits: [{name: inflight, concurrency: 1}]}\n"
	for name, end := range map[string]func(r *rig, stop context.CancelFunc) error{
		"reload": func(r *rig, _ context.CancelFunc) error { _, err := r.daemon.Reload(r.Context()); return err },
		"end":    func(_ *rig, stop context.CancelFunc) error { stop(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, "openai", text, nil)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			served := make(chan error, 1)
			go func() { served <- r.daemon.Serve(ctx, context.Background(), l) }()
			within, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn, _, err := websocket.Dial(within, "ws://"+l.Addr().String()+"/@a/openai/v1/realtime?model=gpt-realtime", &websocket.DialOptions{
				HTTPHeader: http.Header{"X-Mock": {"slow=20ms"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.CloseNow() }()
			if err := conn.Write(within, websocket.MessageText, []byte(`{"type":"response.create"}`)); err != nil {
				t.Fatal(err)
			}
			var done bool
			for begun := false; ; {
				_, message, err := conn.Read(within)
				if err != nil {
					if websocket.CloseStatus(err) != websocket.StatusGoingAway || !done {
						t.Errorf("%v, complete %v", err, done)
					}
					break
				}
				done = done || strings.Contains(string(message), `"status":"completed"`)
				if !begun && strings.Contains(string(message), "response.output_text.delta") {
					begun = true
					if err := end(r, stop); err != nil {
						t.Fatal(err)
					}
				}
			}
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
			s, err := r.gate.Resource(t.Context(), "openai")
			if err != nil || s.InFlight != 0 {
				t.Errorf("%d in flight: %v", s.InFlight, err)
			}
		})
	}
}
