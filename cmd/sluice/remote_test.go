//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/store"
)

// Every transcript that does not fix the store runs on a daemon's store as it does on files.
func TestTranscriptsThroughADaemon(t *testing.T) {
	p := transcripts(func(env *testscript.Env) (string, error) {
		url := "file:" + filepath.Join(env.Getenv("WORK"), "lent")
		st, err := store.Open(t.Context(), url)
		if err != nil {
			return "", err
		}
		lent := storeapi.New(storeapi.Options{
			Store: st, Books: ledger.Beside(st, false), Config: config.Default().Lend,
			Identify: func(*http.Request) (api.Identity, error) { return api.Identity{}, nil },
		})
		server := httptest.NewServer(lent)
		env.Defer(func() {
			lent.Drain()
			server.Close()
			if err := lent.Close(); err != nil {
				t.Error(err)
			}
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		return server.URL, nil
	})
	p.Files = onAnyStore(t)
	testscript.Run(t, p)
}

// Requests that wait at a killed daemon get their turn from its successor, and tickets held there can be ended there.
func TestDaemonIsKilledUnderThoseWhoWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {db: {limits: [{name: one, concurrency: 1}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(listen string) (*process, string) {
		t.Helper()
		p := start(t, []string{"SLUICE_STORE=", "SLUICE_CONFIG=" + file}, "serve", "--store", "file:"+filepath.Join(dir, "store"), "--listen", listen)
		url, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
		return p, url
	}
	first, url := serve("127.0.0.1:0")
	env := []string{"SLUICE_STORE=" + url, "SLUICE_CONFIG="}
	holder := start(t, env, "acquire", "db", "--agent", "a", "--hold", "--json")
	ticket := strings.Trim(holder.tells(`"ticket": `), `",`)
	holder.ends(0)
	waiter := start(t, append(env, "SLUICE_CONFIG="+file), "run", "--resource", "db", "--agent", "b", "--no-gate", "--deadline", "1m", "--", "echo", "my turn")
	waiter.warns("waiting for db")
	first.signal(syscall.SIGKILL)
	_ = proctest.Wait(first.cmd)
	first.ended = true
	second, _ := serve(strings.TrimPrefix(url, "http://"))
	release := start(t, env, "release", ticket, "--status", "200")
	release.tells("released ")
	release.ends(0)
	waiter.says("my turn")
	waiter.ends(0)
	second.signal(syscall.SIGTERM)
	second.ends(0)
}
