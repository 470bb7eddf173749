//go:build slow && (linux || darwin)

package monitor

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

const (
	rulesFile     = "../../deploy/prometheus/alerts.yml"
	dashboardFile = "../../deploy/grafana/sluice.json"
)

// sluiceBinary is what is run.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

// promtool runs a check of Prometheus's own tool.
func promtool(t *testing.T, stdin io.Reader, args ...string) {
	t.Helper()
	cmd := proctest.Command(t, "promtool", args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// serve starts a server of ours and returns the host and port where it is.
func serve(t *testing.T, home string, args ...string) string {
	t.Helper()
	cmd := exec.Command(sluiceBinary, append(args, "--json", "--listen", "127.0.0.1:0")...)
	cmd.Env = built.Env(home)
	line, _ := built.Serve(t, cmd)
	var said struct {
		Listen []string
		URL    string
	}
	if err := json.Unmarshal(line, &said); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return strings.TrimPrefix(append(said.Listen, said.URL)[0], "http://")
}

// server is a Prometheus.
type server struct {
	*testing.T
	url string
}

// get reads what the API answers, and reports whether it is a success.
func (s *server) get(out any, path string) bool {
	client := http.Client{Timeout: proctest.Patience}
	resp, err := client.Get(s.url + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // all was read
	answer := struct {
		Status, Error string
		Data          any
	}{Data: out}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	return err == nil && answer.Status == "success"
}

// query returns how many series a query has, -1 if it cannot be asked.
func (s *server) query(expr string) int {
	var data struct{ Result []json.RawMessage }
	if !s.get(&data, "/api/v1/query?query="+url.QueryEscape(expr)) {
		return -1
	}
	return len(data.Result)
}

func (s *server) until(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(proctest.Patience); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("after %v it is still not so: %s", proctest.Patience, what)
		}
	}
}

// startPrometheus starts one that scrapes a target, with our rules.
func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: sluice\n    static_configs: [{targets: [%q]}]\n", rules, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, nil, "check", "rules", rules)
	promtool(t, nil, "check", "config", config)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		_ = proctest.Wait(cmd)
		if t.Failed() {
			t.Logf("prometheus says:\n%s", said.String())
		}
	})
	return &server{t, "http://" + address}
}

// Prometheus reads what a daemon exports, evaluates every alert rule, raises the alert for a provider that is away, and understands every
// query of the dashboard.
func TestPrometheusScrapesADaemon(t *testing.T) {
	home := t.TempDir()
	provider := serve(t, home, "mock", "generic")
	config := filepath.Join(home, "sluice.yaml")
	text := "store: 'mem:'\npresets: off\nresources:\n  api: {upstream: 'http://" + provider + "', limits: [{name: minute, size: 100/min}]}\n" +
		"  gone: {upstream: 'http://127.0.0.1:1', limits: [{name: minute, size: 100/min}]}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := serve(t, home, "serve", "--config", config)
	client := http.Client{Timeout: proctest.Patience}
	fetch := func(path string) string {
		resp, err := client.Get("http://" + daemon + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // all was read
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	fetch("/api/work")
	fetch("/gone/work")
	promtool(t, strings.NewReader(fetch("/metrics")), "check", "metrics")

	s := startPrometheus(t, daemon)
	s.until("Prometheus has scraped the daemon", func() bool {
		return s.query("up == 1") == 1 && s.query(`sluice_sends_total{resource="api"} >= 1`) > 0
	})
	s.rules()
	s.until("the alert for a provider that is away is active", func() bool {
		return s.query(`ALERTS{alertname="SluiceFailing", resource="gone"}`) == 1
	})
	if n := s.query(`ALERTS{resource="api"}`); n != 0 {
		t.Errorf("%d alerts are active for a resource that is well", n)
	}
	s.dashboard()
}

// rules waits until every rule was evaluated, and wants no error.
func (s *server) rules() {
	s.Helper()
	type rule struct{ Name, Health, LastError string }
	var data struct {
		Groups []struct{ Rules []rule }
	}
	n := 0
	s.until("every rule was evaluated", func() bool {
		data.Groups, n = nil, 0
		if !s.get(&data, "/api/v1/rules") {
			return false
		}
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					s.Fatalf("the rule %s: %s", r.Name, r.LastError)
				}
				if r.Health != "ok" {
					return false
				}
				n++
			}
		}
		return n > 0
	})
	s.Logf("%d rules are evaluated without an error", n)
}

// dashboard asks every query of the dashboard as Grafana would.
func (s *server) dashboard() {
	s.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		s.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		s.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$resource", ".*")
	asked, shown := 0, 0
	for _, p := range board.Panels {
		for _, q := range p.Targets {
			n := s.query(variables.Replace(q.Expr))
			if n < 0 {
				s.Errorf("%s: Prometheus refuses %s", p.Title, q.Expr)
			}
			if asked++; n > 0 {
				shown++
			}
		}
	}
	s.Logf("%d queries of the dashboard are understood, %d have values", asked, shown)
	if shown < asked/4 {
		s.Errorf("only %d of %d queries have values", shown, asked)
	}
}
