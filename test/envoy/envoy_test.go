//go:build slow

package envoy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

const (
	limit   = 200 // requests in a window that does not end during the test
	agents  = 8
	perSend = 50 // requests of each agent
)

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// started starts a process that the test ends, and waits for a line of its output.
func started(t *testing.T, wants *regexp.Regexp, name string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = proctest.Wait(cmd)
	})
	lines, seen := proctest.Reader(out), &bytes.Buffer{}
	for {
		line, err := lines.ReadString('\n')
		seen.WriteString(line)
		if m := wants.FindStringSubmatch(line); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(name), err, seen)
		}
	}
}

const bootstrap = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %[1]d}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: "/"}
                route:
                  cluster: provider
                  rate_limits:
                  - actions:
                    - request_headers: {header_name: x-agent, descriptor_key: agent}
                  - actions:
                    - generic_key: {descriptor_key: class, descriptor_value: p1}
          http_filters:
          - name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: api
              timeout: 30s
              failure_mode_deny: true
              enable_x_ratelimit_headers: DRAFT_VERSION_03
              rate_limit_service:
                transport_api_version: V3
                grpc_service: {envoy_grpc: {cluster_name: gates}}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: provider
    type: STATIC
    load_assignment: {cluster_name: provider, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[2]s}}}}]}]}
  - name: gates
    type: STATIC
    lb_policy: ROUND_ROBIN
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: gates
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[3]s}}}
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %[4]s}}}
`

// whole is a configuration with gaps for the three parts that docs/envoy.md shows: filter, rate limits and cluster.
const whole = `
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
%s
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: "/"}
                route:
                  cluster: gates
%s
%s
`

// Envoy takes what docs/envoy.md shows. It showed no cluster, without which Envoy takes nothing.
func TestEnvoyTakesWhatThePageShows(t *testing.T) {
	envoy := run(t, filepath.Join("..", "..", "scripts", "need-envoy"))
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)\n```").FindAllSubmatch(page, -1)
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	part := func(i, indent int) string {
		margin := strings.Repeat(" ", indent)
		return margin + strings.ReplaceAll(string(blocks[i][1]), "\n", "\n"+margin)
	}
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	for _, filter := range []int{0, 3} {
		if err := os.WriteFile(file, fmt.Appendf(nil, whole, part(filter, 10), part(1, 18), part(2, 2)), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, envoy, "--mode", "validate", "-c", file)
	}
}

// Two gates on one Redis give out one quota: behind Envoy the provider sees all of it and not one request more.
func TestOneQuotaBehindEnvoy(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	proctest.DefaultSignals()
	envoy := run(t, filepath.Join(root, "scripts", "need-envoy"))
	sluice := filepath.Join(t.TempDir(), "sluice")
	run(t, "go", "build", "-tags=grpcnotrace", "-o", sluice, "../../cmd/sluice")
	redis, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Stop() })
	config := filepath.Join(t.TempDir(), "sluice.yaml")
	text := fmt.Sprintf("presets: off\nresources: {api: {limits: [{name: hour, kind: fixed, size: %d/h}]}}\n", limit)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	listens := regexp.MustCompile(`Envoy's rate limit service is on 127\.0\.0\.1:([0-9]+)`)
	var gates []string
	for range 2 {
		gates = append(gates, started(t, listens, sluice, "serve", "--config", config, "--store", redis.URL()+"?timeout=20s", "--listen", "127.0.0.1:0", "--envoy-listen=127.0.0.1:0")[1])
	}
	var arrived atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	t.Cleanup(provider.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	_, upstream, _ := net.SplitHostPort(provider.Listener.Addr().String())
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, bootstrap, port, upstream, gates[0], gates[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, regexp.MustCompile("starting main dispatch loop"), envoy, "-c", file, "--use-dynamic-base-id", "--concurrency", "2")

	var mu sync.Mutex
	codes := map[int]int{}
	var refused http.Header
	var wg sync.WaitGroup
	for a := range agents {
		wg.Go(func() {
			for range perSend {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
				req.Header.Set("x-agent", fmt.Sprintf("agent%d", a))
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				mu.Lock()
				codes[resp.StatusCode]++
				if resp.StatusCode == http.StatusTooManyRequests {
					refused = resp.Header
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d requests arrived, limit %d; answers %v; headers of a refusal %v", arrived.Load(), agents*perSend, limit, codes, refused)
	if n := arrived.Load(); n > limit || n < limit*98/100 {
		t.Errorf("%d requests arrived, the limit is %d", n, limit)
	}
	if codes[http.StatusOK] != int(arrived.Load()) || codes[http.StatusOK]+codes[http.StatusTooManyRequests] != agents*perSend {
		t.Errorf("answers are %v", codes)
	}
	for _, name := range []string{"x-ratelimit-limit", "x-ratelimit-remaining", "ratelimit-limit", "retry-after", "x-sluice-reason"} {
		if refused.Get(name) == "" {
			t.Errorf("a refusal has no %s", name)
		}
	}
	if wait, err := time.ParseDuration(refused.Get("retry-after") + "s"); err != nil || wait <= 0 || wait > 2*time.Hour {
		t.Errorf("retry-after is %q", refused.Get("retry-after"))
	}
}
