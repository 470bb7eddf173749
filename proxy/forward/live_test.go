package forward_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
	"github.com/sluicehq/sluice/sim/mock"
)

// A realtime connection to a gated host passes the gate, decrypted, and its frames arrive complete. A shutdown lets it
// end first.
func TestRealtimeInside(t *testing.T) {
	openai, err := mock.New(mock.Options{Provider: "openai"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(openai.Close)
	var gate *proxy.Proxy
	r := begin(t, openai.ServeHTTP, func(o *forward.Options, po *proxy.Options) {
		dialect, _ := provider.Lookup("openai")
		res := po.Resources["api"]
		res.Dialect = dialect
		po.Resources["api"] = res
		if gate, err = proxy.New(*po); err != nil {
			t.Fatal(err)
		}
		o.Handler = gate
		t.Cleanup(gate.Settle)
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "wss://"+host+"/v1/realtime?model=gpt-realtime", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: r.client(false).Transport}, HTTPHeader: http.Header{"Authorization": {"Bearer key"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	for range 3 {
		// Blank lines and a head of HTTP in a message must not look like a request to whoever reads the connection.
		text := `{"type":"conversation.item.create","item":{"text":"` + strings.Repeat(`\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`, 50) + `"}}`
		for _, event := range []string{strings.ReplaceAll(text, `\r\n`, "  "), `{"type":"response.create"}`} {
			if err := conn.Write(ctx, websocket.MessageText, []byte(event)); err != nil {
				t.Fatal(err)
			}
		}
		for done := false; !done; {
			_, message, err := conn.Read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			done = strings.Contains(string(message), `"type":"response.done"`)
			if strings.Contains(string(message), `"type":"error"`) {
				t.Fatalf("%s", message)
			}
		}
	}
	if err := conn.Write(ctx, websocket.MessageBinary, []byte("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, message, err := conn.Read(ctx); err != nil || !strings.Contains(string(message), `"type":"error"`) { // that is no event
		t.Fatalf("%s %v", message, err)
	}
	if n := openai.Stats().Accepted; n != 3 {
		t.Errorf("%d responses", n)
	}
	down := make(chan error, 1)
	go func() { down <- r.server.Shutdown(ctx) }()
	select {
	case err := <-down:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	go gate.DrainSockets(ctx)
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("%v", err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}
