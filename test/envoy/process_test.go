//go:build slow

package envoy

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

// processed is Envoy with external processing, as docs/envoy.md shows it.
const processed = `
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          http_filters:
          - name: envoy.filters.http.ext_proc
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor
              message_timeout: 610s
              processing_mode: {request_header_mode: SEND, request_body_mode: BUFFERED, response_header_mode: SEND, response_body_mode: STREAMED}
              grpc_service:
                envoy_grpc: {cluster_name: gates}
                initial_metadata: [{key: x-sluice-resource, value: openai}]
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: "/"}, route: {cluster: provider, timeout: 0s}}]}
  clusters:
  - name: provider
    type: STATIC
    load_assignment: {cluster_name: provider, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}
  - name: gates
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment: {cluster_name: gates, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}
`

// The gate holds requests of Envoy until there is room, and charges the tokens that responses state. What a client abandons is settled, and a
// request that has waited for long enough is refused.
func TestEnvoyHoldsRequestsAndReadsUsage(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	proctest.DefaultSignals()
	envoy := run(t, filepath.Join(root, "scripts", "need-envoy"))
	sluice := filepath.Join(t.TempDir(), "sluice")
	run(t, "go", "build", "-tags=grpcnotrace", "-o", sluice, "../../cmd/sluice")
	mock := freePort(t)
	mocked := exec.Command(sluice, "mock", "openai", "--listen", "127.0.0.1:"+mock, "--latency", "50ms", "--concurrency", "2", "--json")
	built.Serve(t, mocked)
	const requests = 24
	config := filepath.Join(t.TempDir(), "sluice.yaml")
	text := fmt.Sprintf(`presets: off
resources:
  openai:
    provider: openai
    abort: free
    client_deadline: 20s
    limits: [{name: places, concurrency: 2}, {name: input, unit: input_tokens, size: 100000/h}, {name: hour, kind: fixed, size: %d/h}]
    guard: "off"
    light: "off"
    breaker: "off"
`, requests+2)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api := "127.0.0.1:" + freePort(t)
	asked := started(t, regexp.MustCompile(`Envoy's rate limit service is on 127\.0\.0\.1:([0-9]+)`), sluice,
		"serve", "--config", config, "--store", "mem:", "--listen", api, "--envoy-listen=127.0.0.1:0")[1]
	gate, port := "http://"+api, freePort(t)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, processed, port, mock, asked), 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, regexp.MustCompile("starting main dispatch loop"), envoy, "-c", file, "--use-dynamic-base-id", "--concurrency", "2")

	post := func(ctx context.Context, more string) *http.Response {
		body := `{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]` + more + `}`
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+port+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Sluice-Agent", "behind-envoy")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return nil
		}
		return resp
	}
	var mu sync.Mutex
	var tokens int64
	var wait sync.WaitGroup
	for range requests {
		wait.Go(func() {
			resp := post(t.Context(), "")
			if resp == nil {
				return
			}
			defer func() { _ = resp.Body.Close() }()
			var said struct {
				Usage struct {
					Prompt int64 `json:"prompt_tokens"`
				}
			}
			if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || resp.StatusCode != http.StatusOK || said.Usage.Prompt == 0 {
				t.Errorf("%d %+v %v", resp.StatusCode, said, err)
			}
			mu.Lock()
			defer mu.Unlock()
			tokens += said.Usage.Prompt
		})
	}
	wait.Wait()
	if used := level(t, gate, "input"); used != tokens || used == 0 {
		t.Errorf("%d tokens are charged, the provider says %d", used, tokens)
	}

	const stream = `,"stream":true,"stream_options":{"include_usage":true}`
	before := level(t, gate, "input")
	if resp := post(t.Context(), stream); resp != nil {
		lines, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		m := regexp.MustCompile(`"prompt_tokens":([0-9]+)`).FindSubmatch(lines)
		if err != nil || m == nil || fmt.Sprint(level(t, gate, "input")-before) != string(m[1]) {
			t.Errorf("%d tokens are charged, the stream says %s (%v)", level(t, gate, "input")-before, m, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if resp := post(ctx, stream); resp != nil {
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Error(err)
		}
		cancel()
		_ = resp.Body.Close()
	}
	cancel()
	for end := time.Now().Add(20 * time.Second); level(t, gate, "places") != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("an abandoned stream keeps its place")
		}
	}

	if resp := post(t.Context(), ""); resp != nil { // the hour is used up
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("X-Sluice-Refused") != "1" || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "openai") {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
		}
	}
}

// freePort returns a port where nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Close() }()
	_, port, _ := net.SplitHostPort(free.Addr().String())
	return port
}

// level is what is used of a limit.
func level(t *testing.T, gate, limit string) int64 {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gate+"/v1/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var status struct {
		Resources []struct {
			Limits []struct {
				Name string
				Used int64
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		t.Fatal(err)
	}
	for _, r := range status.Resources {
		for _, l := range r.Limits {
			if l.Name == limit {
				return l.Used
			}
		}
	}
	t.Fatalf("there is no limit %s", limit)
	return 0
}
