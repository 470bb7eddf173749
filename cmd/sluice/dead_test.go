//go:build unix

package main

import (
	"context"
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
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// deadAddress returns an address that refuses connections until listen is called. A socket is bound to it meanwhile, so
// that no other program gets it.
func deadAddress(t *testing.T) (address string, listen func() net.Listener) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	held := os.NewFile(uintptr(fd), "provider")
	t.Cleanup(func() { _ = held.Close() })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port), func() net.Listener {
		t.Helper()
		if err := syscall.Listen(fd, 16); err != nil {
			t.Fatal(err)
		}
		l, err := net.FileListener(held)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// A provider that is gone shows everywhere: in the client's response in the provider's own format, in the log, the
// event log, why, the status of another process, and the metrics. Its return shows too.
func TestADeadProviderIsToldEverywhere(t *testing.T) {
	address, listen := deadAddress(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {gone: {provider: anthropic, upstream: \"http://"+address+"\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLUICE_STORE=file:" + filepath.Join(dir, "state"), "SLUICE_CONFIG=" + file}
	p := start(t, env, "serve", "--listen", "127.0.0.1:0")
	at, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
	began := time.Now()
	if code := sendTo(t, at+"/gone/v1/messages"); code != 502 {
		t.Errorf("status %d, want 502", code)
	}
	if took := time.Since(began); took > 2*time.Second+proctest.Patience/4 { // a machine under load
		t.Errorf("the client was told after %v", took)
	}
	const words = "connection refused by "
	p.warns(`msg="gone is failing"`)
	other := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sluice", args...)
		cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+dir), env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	if out := other("status"); !strings.Contains(out, "gone  failing") || !strings.Contains(out, words) || !strings.Contains(out, "0 reached the provider") || strings.Contains(out, " sent") {
		t.Errorf("status prints %s", out)
	}
	if out := other("doctor"); !strings.Contains(out, "gone  unknown") || !strings.Contains(out, "It is failing: the last ") {
		t.Errorf("doctor prints %s", out)
	}
	if out := other("doctor", "gone"); !regexp.MustCompile(`^gone  unknown  no send was served in this period\n  provider\n    It is failing: `).MatchString(out) {
		t.Errorf("doctor does not begin with the trouble: %s", out)
	}
	if out := other("report"); !strings.Contains(out, "no request reached: ") || !regexp.MustCompile(`(?m)^gone\n +caller .* failed .*\n.* 0 +0 +0% +0 +[1-9]`).MatchString(out) {
		t.Errorf("report prints %s", out)
	}
	if out := other("why"); !strings.Contains(out, "gone is failing: the last ") || !strings.Contains(out, words) {
		t.Errorf("why prints %s", out)
	}
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	if out := get("/metrics"); !strings.Contains(out, `sluice_resource_state{resource="gone",state="failing"} 1`) ||
		strings.Contains(out, `sluice_upstream_errors_total{kind="refused",resource="gone"} 0`) || !strings.Contains(out, `sluice_upstream_errors_total{kind="refused",resource="gone"} `) {
		t.Error("the metrics do not tell of it")
	}
	if out := get("/readyz"); !strings.HasPrefix(out, "200 ") || !strings.Contains(out, `"failing"`) {
		t.Errorf("/readyz: %s", out)
	}
	if out := get("/readyz?strict"); !strings.HasPrefix(out, "503 ") {
		t.Errorf("/readyz?strict: %s", out)
	}
	// It comes back at the same address.
	server := &httptest.Server{Listener: listen(), Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })}}
	server.Start()
	t.Cleanup(server.Close)
	if code := sendTo(t, at+"/gone/v1/messages"); code != 200 {
		t.Errorf("status %d once it is back", code)
	}
	p.warns(`msg="gone is no longer failing"`)
	if out := other("status"); !strings.Contains(out, "gone  flowing") {
		t.Errorf("status prints %s", out)
	}
	p.signal(syscall.SIGTERM)
	_, _ = io.Copy(io.Discard, p.stderr)
	p.ends(0)
	log, err := os.ReadFile(filepath.Join(dir, "state", "events.jsonl"))
	if err != nil || !strings.Contains(string(log), `"event":"upstream_error"`) || !strings.Contains(string(log), `"state":"failing"`) {
		t.Errorf("the log of events is %s, %v", log, err)
	}
}
