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

// Another address of the store changes nothing else: every transcript that leaves the store open runs
// on a Redis as it does on files.
func TestTranscriptsOnRedis(t *testing.T) {
	server := redisrun.New(t)
	p := transcripts(func(env *testscript.Env) (string, error) {
		return server.URL() + "?prefix=" + filepath.Base(env.Getenv("WORK")), nil
	})
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
			p.Files = append(p.Files, file)
		}
	}
	if len(p.Files) < 10 {
		t.Fatalf("only %q", p.Files)
	}
	testscript.Run(t, p)
}

// The transcripts in testdata/redis each have a Redis of their own, to do things to.
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
