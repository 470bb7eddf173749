package daemon_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// rig is a provider and a daemon before it.
type rig struct {
	*testing.T
	mock   *mock.Server
	gate   *sluice.Gate
	daemon *daemon.Daemon
	file   *config.File
	base   *http.Transport

	list    *deadletter.List
	letters *deadletter.Keeper
}

func begin(t *testing.T, provider, text string, env map[string]string) *rig {
	t.Helper()
	r := &rig{T: t}
	var err error
	if r.mock, err = mock.New(mock.Options{Provider: provider, Seed: 1, Requests: sim.Rate{N: 1000, Window: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(r.mock)
	t.Cleanup(upstream.Close)
	t.Cleanup(r.mock.Close)
	vars := func(name string) (string, bool) {
		if name == "UPSTREAM" {
			return upstream.URL, true
		}
		v, ok := env[name]
		return v, ok
	}
	if r.file, err = config.Parse("test.yaml", []byte(text), vars); err != nil {
		t.Fatal(err)
	}
	c, err := r.file.GateConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.Store = "mem:"
	hub := api.NewHub()
	c.Events = hub.Add
	st, err := store.Open(t.Context(), c.Store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if r.gate, err = sluice.OpenWithStore(t.Context(), st, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.gate.Close() })
	reloading := daemon.Reloading{
		Load: func() (*config.File, error) { return config.Parse("test.yaml", []byte(text), vars) },
		Open: func(ctx context.Context, _ *config.File) (*sluice.Gate, error) {
			return sluice.OpenWithStore(ctx, st, c)
		},
		Follow: func(_ *config.File, gate *sluice.Gate) { r.gate = gate },
	}
	r.base = http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(r.base.CloseIdleConnections)
	if r.list, err = deadletter.Open(filepath.Join(t.TempDir(), "letters")); err != nil {
		t.Fatal(err)
	}
	r.letters = deadletter.NewKeeper(r.list, nil)
	t.Cleanup(r.letters.Flush)
	r.daemon, err = daemon.New(daemon.Options{
		File: r.file, Gate: r.gate, Env: vars, Base: r.base, Events: hub, Store: st, Reloading: reloading, Letters: r.letters,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.daemon.Settle)
	return r
}

// post sends a call through the daemon.
func (r *rig) post(path, body string, header ...string) (*httptest.ResponseRecorder, string) {
	r.Helper()
	q := httptest.NewRequestWithContext(r.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.daemon.ServeHTTP(w, q)
	return w, w.Body.String()
}

func messages(model string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`, model)
}

const routed = `
resources:
  anthropic: {provider: anthropic, upstream: "${UPSTREAM}"}
routes:
  simple: [anthropic/claude-opus-4-5, anthropic/claude-haiku-4-5]
  other: [gemini/flash]
`

func TestTheModelIsLeftToTheGate(t *testing.T) {
	r := begin(t, "anthropic", routed, nil)
	w, text := r.post("/@a/anthropic/v1/messages", messages("auto:simple"), "X-Api-Key", "k")
	if w.Code != 200 || w.Header().Get("X-Sluice-Model") != "claude-haiku-4-5" || !strings.Contains(text, "claude-haiku-4-5") {
		t.Errorf("%d %v %s", w.Code, w.Header(), text)
	}
	w, _ = r.post("/@a/anthropic/v1/messages", messages("claude-opus-4-5"), "X-Api-Key", "k", "X-Sluice-Route", "simple")
	if w.Header().Get("X-Sluice-Model") != "claude-haiku-4-5" {
		t.Errorf("by a header: %v", w.Header())
	}
	for _, task := range []string{"unknown", "other"} {
		if w, text := r.post("/@a/anthropic/v1/messages", messages("auto:"+task), "X-Api-Key", "k"); w.Code != http.StatusBadRequest || !strings.Contains(text, "route") {
			t.Errorf("%s: %d %s", task, w.Code, text)
		}
	}
	if l := r.mock.Stats().Ledger; l["claude-haiku-4-5"].Requests != 2 || len(l) != 1 {
		t.Errorf("the provider has %v", l)
	}
}

// When a budget is exceeded, calls are refused or use a cheaper model, as configured.
func TestBudgets(t *testing.T) {
	for over, check := range map[string]func(w *httptest.ResponseRecorder, text string) bool{
		"deny": func(w *httptest.ResponseRecorder, text string) bool {
			return w.Code == http.StatusForbidden && strings.Contains(text, "budget") && w.Header().Get("X-Should-Retry") == "false" && strings.Contains(text, `"error"`)
		},
		"reroute": func(w *httptest.ResponseRecorder, _ string) bool {
			return w.Code == 200 && w.Header().Get("X-Sluice-Model") == "claude-haiku-4-5"
		},
		"alert": func(w *httptest.ResponseRecorder, _ string) bool { return w.Code == 200 },
	} {
		t.Run(over, func(t *testing.T) {
			r := begin(t, "anthropic", routed+"budgets: [{name: all, size: 0.002 usd/day, over: "+over+"}]\n", nil)
			var w *httptest.ResponseRecorder
			var text string
			for i := range 300 { // an opus call costs about a tenth of a cent
				if w, text = r.post("/@a/anthropic/v1/messages", messages("claude-opus-4-5"), "X-Api-Key", "k"); check(w, text) && (over != "alert" || i > 10) {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if !check(w, text) {
				t.Errorf("%d %v %s", w.Code, w.Header(), text)
			}
		})
	}
}

// A path costs the same, however it is written.
func TestNobodyGetsRoundTheBudget(t *testing.T) {
	r := begin(t, "anthropic", routed+"budgets: [{name: all, size: 0.0001 usd/day}]\n", nil)
	for _, path := range []string{"/v1/messages", "/v1/mess%61ges", "/v1//messages", "/v1%2Fmessages"} {
		if w, text := r.post("/@a/anthropic"+path, messages("claude-opus-4-5"), "X-Api-Key", "k"); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, w.Code, text)
		}
	}
}

func TestKeysFromTheEnvironment(t *testing.T) {
	sum := sha256.Sum256([]byte("tok"))
	text := `
resources:
  anthropic: {provider: anthropic, upstream: "${UPSTREAM}", inject: {header: x-api-key, env: THE_KEY}}
tokens: [{name: one, hash: ` + hex.EncodeToString(sum[:]) + `}]
`
	r := begin(t, "anthropic", text, map[string]string{"THE_KEY": "secret"})
	if w, _ := r.post("/@a/anthropic/v1/messages", messages("claude-haiku-4-5")); w.Code != http.StatusUnauthorized {
		t.Error(w.Code)
	}
	if w, text := r.post("/@a/anthropic/v1/messages", messages("claude-haiku-4-5"), "X-Api-Key", "tok"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, text)
	}
	_, err := daemon.New(daemon.Options{File: r.file, Gate: r.gate, Env: func(string) (string, bool) { return "", false }})
	if err == nil || !strings.Contains(err.Error(), "THE_KEY") || strings.Contains(err.Error(), "secret") {
		t.Errorf("without the key: %v", err)
	}
}

// Running requests are served to the end; later ones are refused.
func TestItsEnd(t *testing.T) {
	r := begin(t, "anthropic", routed, nil)
	l, err := daemon.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- r.daemon.Serve(ctx, t.Context(), l) }()
	url := "http://" + l.Addr().String()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/@a/anthropic/v1/messages",
		strings.NewReader(`{"model":"claude-haiku-4-5","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("X-Mock", "slow=20ms")
	resp, err := r.base.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	for { // it takes a moment until the door is closed
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			break
		}
		_ = c.Close()
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "message_stop") {
		t.Errorf("%v: %s", err, body)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "nowhere", "example.com:80"} {
		if l, err := daemon.Listen(t.Context(), address, false); err == nil {
			_ = l.Close()
			t.Errorf("%s is open to everybody", address)
		}
	}
	dir, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := daemon.Listen(t.Context(), "unix:"+path, false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := daemon.Listen(t.Context(), "unix:"+path, false); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second one: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as a process that was killed
	_ = l.Close()
	if l, err = daemon.Listen(t.Context(), "unix:"+path, false); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.Listen(t.Context(), "unix:"+path, false); err == nil {
		t.Error("a file was replaced")
	}
}

func TestReady(t *testing.T) {
	r := begin(t, "anthropic", routed, nil)
	for _, path := range []string{"/healthz", "/readyz"} {
		w := httptest.NewRecorder()
		r.daemon.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil))
		var got map[string]string
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || got["status"] != "ok" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// The page is served only under the daemon's own host names.
func TestPage(t *testing.T) {
	r := begin(t, "anthropic", routed, nil)
	for host, status := range map[string]int{"localhost": 200, "evil.example": http.StatusMisdirectedRequest} {
		w := httptest.NewRecorder()
		r.daemon.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", nil))
		if w.Code != status || status == 200 && !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %v", host, w.Code, w.Header())
		}
	}
}
