//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/internal/logging"
	"github.com/sluicehq/sluice/internal/proctest"
)

// post sends a call to a daemon and returns what it answers.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	w, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = w.Body.Close() }()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Error(err)
	}
	return w.StatusCode, string(text)
}

// A running daemon applies an edited file by signal and by request, also to waiting requests. It rejects a wrong file.
func TestServeReloads(t *testing.T) {
	for _, store := range []string{"mem:", "file:"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			url := store
			if store == "file:" {
				url += t.TempDir()
			}
			file := filepath.Join(t.TempDir(), "sluice.yaml")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			places := func(n string) string {
				return "store: " + url + "\nresources:\n  api:\n    limits:\n      - {name: places, concurrency: " + n + "}\n"
			}
			write(places("1"))
			p := start(t, []string{"SLUICE_STORE="}, "serve", "--config", file, "--listen", "127.0.0.1:0")
			line, err := p.stdout.ReadString('\n')
			at, ok := strings.CutPrefix(line, "sluice: listening on ")
			if !ok {
				t.Fatalf("it said %q, %v", line, err)
			}
			at, _, _ = strings.Cut(at, ";")
			if code, text := post(t, at+"/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`); code != 200 {
				t.Fatalf("%d %s", code, text)
			}
			waits := make(chan string, 1)
			go func() {
				_, text := post(t, at+"/v1/tickets", `{"resource":"api","agent":"b","wait_ms":600000}`)
				waits <- text
			}()
			late := time.Now().Add(proctest.Patience)
			for text := ""; !strings.Contains(text, `"b"`); { // until it waits
				if time.Now().After(late) {
					t.Fatalf("b does not wait: %s", text)
				}
				w, err := http.Get(at + "/v1/why") //nolint:noctx // the test ends the daemon
				if err != nil {
					t.Fatal(err)
				}
				all, err := io.ReadAll(w.Body)
				_ = w.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				text = string(all)
			}
			write(places("many"))
			p.signal(syscall.SIGHUP)
			p.warns("not reloaded, the configuration before stays in force: ")
			code, text := post(t, at+"/-/reload", "")
			if code != 400 || !strings.Contains(text, `"line":5`) || !strings.Contains(text, `"field":"resources.api.limits[0].concurrency"`) {
				t.Errorf("%d %s", code, text)
			}
			write(places("2"))
			p.signal(syscall.SIGHUP)
			p.warns("reloaded: resource api: limits")
			if text := <-waits; !strings.Contains(text, `"agent":"b"`) || !strings.Contains(text, `"limit":2`) && !strings.Contains(text, `"ticket"`) {
				t.Errorf("who waits gets %s", text)
			}
			write(places("3"))
			if code, text := post(t, at+"/-/reload", ""); code != 200 || !strings.Contains(text, `"api",`) || !strings.HasSuffix(text, `,"changed":["resource api: limits"],"warnings":[]}`+"\n") {
				t.Errorf("%d %s", code, text)
			}
			if code, text := post(t, at+"/v1/tickets", `{"resource":"api","agent":"c","wait_ms":0}`); code != 200 {
				t.Errorf("the third of three: %d %s", code, text)
			}
			write(strings.Replace(places("3"), "store: "+url, "store: file:"+filepath.Dir(file), 1))
			if code, text := post(t, at+"/-/reload", ""); code != 409 || !strings.Contains(text, `"field":"store"`) || !strings.Contains(text, "restart") {
				t.Errorf("another store: %d %s", code, text)
			}
			p.signal(syscall.SIGTERM)
			p.ends(0)
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

// Without a file there is nothing to reload, and the daemon keeps running.
func TestServeWithoutAFileHasNothingToReload(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"SLUICE_CONFIG="}, "serve", "--store", "mem:", "--listen", "127.0.0.1:0")
	if line, err := p.stdout.ReadString('\n'); !strings.HasPrefix(line, "sluice: listening on ") { // from now on it takes signals
		t.Fatalf("it said %q, %v", line, err)
	}
	p.signal(syscall.SIGHUP)
	p.warns("not reloaded, the configuration before stays in force: this daemon has no configuration file to read again")
	p.signal(syscall.SIGTERM)
	p.ends(0)
}

// Under nohup SIGHUP still means a reload, and never ends the daemon.
func TestServeReloadsUnderNohup(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("store: mem:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startCommand(t, []string{"SLUICE_STORE="}, "sh", "-c", `trap "" HUP INT; exec sluice serve --listen 127.0.0.1:0 --config "$0"`, file)
	p.tells("sluice: listening on ")
	p.signal(syscall.SIGHUP)
	p.warns("reloaded: nothing has changed")
	p.signal(syscall.SIGINT)
	p.ends(0)
}

func TestReloadSaysItInOneLine(t *testing.T) {
	var out bytes.Buffer
	s := &session{notes: logging.Plain(&out)}
	s.sayReloaded(daemon.Reloaded{}, os.ErrNotExist)
	s.sayReloaded(daemon.Reloaded{}, nil)
	done := daemon.Reloaded{}
	done.Changed, done.Warnings = []string{"one", "two\nlines"}, []string{"three"}
	s.sayReloaded(done, nil)
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 3 || lines[1] != "sluice: reloaded: nothing has changed" ||
		!strings.Contains(lines[2], "one; two") || !strings.HasSuffix(lines[2], "; warning: three") {
		t.Errorf("%q", lines)
	}
}
