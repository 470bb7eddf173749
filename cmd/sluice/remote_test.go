//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
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
		f := config.Default()
		c, err := f.GateConfig(time.Now())
		if err != nil {
			return "", err
		}
		c.Store = url
		gate, err := sluice.OpenWithStore(t.Context(), st, c)
		if err != nil {
			return "", err
		}
		d, err := daemon.New(daemon.Options{File: f, Gate: gate, Store: st})
		if err != nil {
			return "", err
		}
		l, err := daemon.Listen(t.Context(), "127.0.0.1:0", false)
		if err != nil {
			return "", err
		}
		ctx, stop := context.WithCancel(context.Background())
		served := make(chan error, 1)
		go func() { served <- d.Serve(ctx, ctx, l) }()
		env.Defer(func() {
			stop()
			if err := errors.Join(<-served, gate.Close(), st.Close()); err != nil {
				t.Error(err)
			}
		})
		return daemon.URL(l), nil
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
