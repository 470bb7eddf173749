package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
)

// A status below 100 made the handler panic, and its client got no answer.
func TestAStatusThatIsNone(t *testing.T) {
	for _, line := range []string{"000 X", "099 X", "007"} {
		up := rawUpstream(t, func(w io.Writer) {
			_, _ = io.WriteString(w, "HTTP/1.1 "+line+"\r\nContent-Length: 2\r\n\r\nok")
		})
		r := begin(t, onePlace(), hello, func(o *proxy.Options) {
			res := o.Resources["api"]
			res.Upstream = up
			res.Dialect, _ = provider.Lookup("openai")
			o.Resources["api"] = res
		})
		resp, text := r.get("/@a/api/v1/models")
		if resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, "status") || resp.Header.Get("X-Sluice-Refused") != "1" {
			t.Errorf("%s: %d %s", line, resp.StatusCode, text)
		}
		if s := r.status(); s.InFlight != 0 {
			t.Errorf("%s: %d in flight", line, s.InFlight)
		}
	}
}

// A provider could send the headers by which clients recognise the gate. A gate on this machine may be the upstream, and
// its refusals pass.
func TestAProviderDoesNotPoseAsTheGate(t *testing.T) {
	for _, near := range []bool{false, true} {
		var at string
		r := begin(t, perMinute(100), func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			for _, name := range []string{"X-Sluice-Refused", "X-Sluice-Held", "X-Sluice-Model", "X-Other"} {
				h.Set(name, "1")
			}
			h.Set("Trailer", "X-Sluice-End, X-End")
			_, _ = io.WriteString(w, "hello")
			h.Set("X-Sluice-End", "1")
			h.Set("X-End", "1")
		}, func(o *proxy.Options) {
			res := o.Resources["api"]
			at = res.Upstream.Host
			if !near {
				res.Upstream = &url.URL{Scheme: "http", Host: "provider.test"}
			}
			o.Resources["api"] = res
			base := o.Base.(*http.Transport)
			base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, at)
			}
		})
		resp, text := r.get("/@a/api/")
		if text != "hello" || resp.Header.Get("X-Other") != "1" || resp.Trailer.Get("X-End") != "1" {
			t.Errorf("near %v: %q %v %v", near, text, resp.Header, resp.Trailer)
		}
		if resp.Header.Get("X-Sluice-Model") != "" {
			t.Errorf("near %v: the provider names the model that the gate chose", near)
		}
		for _, name := range []string{"X-Sluice-Refused", "X-Sluice-Held"} {
			if got := resp.Header.Get(name) != ""; got != near {
				t.Errorf("near %v: %s %v", near, name, got)
			}
		}
		if got := resp.Trailer.Get("X-Sluice-End") != ""; got != near {
			t.Errorf("near %v: trailers %v", near, resp.Trailer)
		}
	}
}
