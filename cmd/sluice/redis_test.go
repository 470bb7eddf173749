package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// slowly returns the URL of a Redis with timeouts for a busy machine.
func slowly(url string) string {
	sign := "?"
	if strings.Contains(url, "?") {
		sign = "&"
	}
	return url + sign + "timeout=20s"
}

// Only the store's address differs: every transcript that does not fix the store runs on Redis as it does on files.
func TestTranscriptsOnRedis(t *testing.T) {
	server := redisrun.New(t)
	p := transcripts(func(env *testscript.Env) (string, error) {
		return slowly(server.URL() + "?prefix=" + filepath.Base(env.Getenv("WORK"))), nil
	})
	p.Files = onAnyStore(t)
	testscript.Run(t, p)
}

// onAnyStore returns the transcripts that do not fix the store.
func onAnyStore(t *testing.T) (files []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("SLUICE_STORE=$STORE\n")) {
			files = append(files, file)
		}
	}
	if len(files) < 10 {
		t.Fatalf("only %q", files)
	}
	return files
}

// Each transcript in testdata/redis has its own Redis, which it can stop and change.
func TestRedisTranscripts(t *testing.T) {
	p := transcripts(func(env *testscript.Env) (string, error) {
		server, err := redisrun.Start(redisrun.Options{})
		if err != nil {
			return "", err
		}
		env.Defer(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		env.Values[redisKey{}] = server
		env.Setenv("REDIS", server.Addr())
		return server.URL(), nil
	})
	p.Dir = filepath.Join("testdata", "redis")
	testscript.Run(t, p)
}

// Commands work the same on every kind of Redis setup.
func TestCommandsOnEveryKindOfRedis(t *testing.T) {
	certs, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	secure := redisrun.NewServer(t, redisrun.Options{TLS: &certs})
	for kind, url := range map[string]string{
		"cluster": slowly(redisrun.NewCluster(t).URL()), "sentinel": slowly(redisrun.NewSteadySentinel(t).URL()),
		"tls": slowly("rediss://" + secure.TLSAddr() + "?ca=" + certs.CA + "&cert=" + certs.ClientCert + "&key=" + certs.ClientKey),
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_STATE_HOME", dir)
			config := filepath.Join(dir, "sluice.yaml")
			text := "resources:\n  db: {limits: [{name: one, concurrency: 1}]}\n  api: {limits: [{name: minute, size: 80/min}]}\n"
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command := func(args ...string) map[string]any {
				return said(t, append(args, "--store", url, "--config", config, "--json")...).(map[string]any)
			}
			ticket := command("acquire", "db", "--agent", "a", "--hold")["ticket"].(string)
			var stdout, stderr bytes.Buffer
			if code := run([]string{"acquire", "db", "--agent", "b", "--wait", "0", "--store", url, "--config", config}, &stdout, &stderr); code != exitNotYet {
				t.Errorf("exit code %d: %s", code, stderr.String())
			}
			if got := command("release", ticket, "--status", "200")["verdict"]; got != "ok" {
				t.Errorf("the verdict is %v", got)
			}
			command("acquire", "db", "--agent", "b", "--wait", "0")
			command("pause", "api", "--for", "1m")
			st := command("status")
			if got := st["store"]; got != url {
				t.Errorf("the store is %v, not %s", got, url)
			}
			for _, r := range st["resources"].([]any) {
				r := r.(map[string]any)
				if name := r["name"]; name == "db" && r["sent"] != 2.0 || name == "api" && r["paused_until"] == nil || r["outage"] != nil {
					t.Errorf("%v", r)
				}
			}
		})
	}
}

// redisKey finds the server of a script.
type redisKey struct{}

// redis kill|restart|pause|resume does that to the script's server, and redis do COMMAND... sends it a
// command.
func redis(ts *testscript.TestScript, neg bool, args []string) {
	server, ok := ts.Value(redisKey{}).(*redisrun.Server)
	if !ok || neg || len(args) == 0 {
		ts.Fatalf("usage: redis kill|restart|pause|resume|do COMMAND..., in testdata/redis")
	}
	switch args[0] {
	case "kill":
		ts.Check(server.Kill())
	case "restart":
		ts.Check(server.Restart())
	case "pause":
		ts.Check(server.Pause())
	case "resume":
		ts.Check(server.Resume())
	case "do":
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := server.Do(ctx, args[1:]...)
		ts.Check(err)
	default:
		ts.Fatalf("redis %s: there is no such thing to do", strings.Join(args, " "))
	}
}
