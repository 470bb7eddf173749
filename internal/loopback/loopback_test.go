package loopback_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/sluicehq/sluice/internal/loopback"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.1": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "localhost.example": false, "[::1]": false,
	} {
		if got := loopback.Host(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestRequest(t *testing.T) {
	tcp, socket := &net.TCPAddr{}, &net.UnixAddr{Net: "unix"}
	for _, c := range []struct {
		remote string
		local  net.Addr
		want   bool
	}{
		{"127.0.0.1:80", tcp, true},
		{"[::1]:80", tcp, true},
		{"[::ffff:127.0.0.1]:80", tcp, true},
		{"192.0.2.1:80", tcp, false},
		{"@", tcp, false},
		{"@", socket, true},
		{"192.0.2.1:80", nil, false},
	} {
		ctx := t.Context()
		if c.local != nil {
			ctx = context.WithValue(ctx, http.LocalAddrContextKey, c.local)
		}
		r := (&http.Request{RemoteAddr: c.remote}).WithContext(ctx)
		if got := loopback.Request(r); got != c.want {
			t.Errorf("%q at %v: %v", c.remote, c.local, got)
		}
	}
}
