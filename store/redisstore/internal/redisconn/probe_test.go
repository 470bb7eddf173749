package redisconn

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

func TestServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	plain := func(text string) func([]string) string { return func([]string) string { return text } }
	for name, c := range map[string]struct {
		answer func([]string) string
		says   string
	}{
		"5.0.7":     {redis("# Server\r\nredis_version:5.0.7\r\nredis_mode:standalone\r\n", evalOK), "Redis 5.0.7 is too old: 6.2 or later is needed"},
		"6.0.16":    {redis("# Server\r\nredis_version:6.0.16\r\n", evalOK), "Redis 6.0.16 is too old"},
		"version":   {redis("# Server\r\n", evalOK), "does not say its version"},
		"sentinel":  {redis("redis_version:7.0.0\r\nredis_mode:sentinel\r\n", evalOK), "redis+sentinel://host:port/MASTER"},
		"cluster":   {redis("redis_version:7.0.0\r\nredis_mode:cluster\r\n", evalOK), "redis+cluster://"},
		"no EVAL":   {redis("redis_version:7.2.4\r\n", unknownCommand), "no Lua scripting; install the package"},
		"no engine": {redis("redis_version:7.2.4\r\n", plain("-ERR Could not find scripting engine 'lua'\r\n")), "no Lua scripting; install the package"},
		"disabled":  {redis("redis_version:7.2.4\r\n", plain("-ERR Lua scripting disabled\r\n")), "no Lua scripting; install the package"},
		"protected": {plain("-DENIED Redis is running in protected mode because...\r\n"), "protected mode"},
		"odd":       {plain("-ERR no\r\n"), "Redis refuses the connection: no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, refuse(t, newFake(t, c.answer).URL()), FaultUnfit, c.says)
		})
	}
}

func TestServersThatCanBeUsed(t *testing.T) {
	t.Parallel()
	for info, want := range map[string]server{
		"redis_version:6.2.14\r\nredis_mode:standalone\r\n":                                               {"Redis", "6.2.14", 6, 2, "standalone"},
		"redis_version:255.255.255\r\n":                                                                   {"Redis", "255.255.255", 255, 255, ""},
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.1\r\nserver_mode:standalone\r\n": {"Valkey", "9.0.1", 7, 2, ""},
	} {
		l := open(t, newFake(t, redis(info, evalOK)).URL())
		if l.server != want {
			t.Errorf("%q: %+v, want %+v", info, l.server, want)
		}
	}
	if got := (server{name: "Valkey", version: "9.0.1"}).String(); got != "Valkey 9.0.1" {
		t.Error(got)
	}
}

// Servers quote the arguments of unknown commands, and the first command of a client contains the password.
func TestQuotedPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	refuseAll := func(args []string) string {
		if strings.EqualFold(args[0], "HELLO") {
			return strings.Replace(unknownCommand(args), "unknown", "no such", 1)
		}
		return unknownCommand(args)
	}
	for name, answer := range map[string]func([]string) string{"other words": refuseAll, "same words": unknownCommand} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, answer)
			err := refuse(t, "redis://me:hunter2@"+f.Addr().String())
			expect(t, err, FaultUnfit, "")
			for e := range errorTree(err) {
				if strings.Contains(e.Error()+Why(e), "hunter2") {
					t.Error(e)
				}
			}
			if !strings.Contains(err.Error(), "redis://me:***@") {
				t.Error(err)
			}
		})
	}
}

// errorTree walks over all that an error wraps.
func errorTree(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) {
		if !yield(err) {
			return
		}
		var inner []error
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			inner = e.Unwrap()
		case interface{ Unwrap() error }:
			inner = []error{e.Unwrap()}
		}
		for _, e := range inner {
			if e != nil {
				for each := range errorTree(e) {
					if !yield(each) {
						return
					}
				}
			}
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	silent := newFake(t, nil)
	listener.Close()
	for url, says := range map[string]string{
		"redis://" + address:                          "is it running there?",
		"redis+cluster://" + address + "," + address:  "is it running there?",
		"redis+sentinel://" + address + "/m":          "is it running there?",
		"redis://no-such-host.invalid":                "",
		"redis+unix://" + t.TempDir() + "/redis.sock": "is it running there?",
		silent.URL() + "?timeout=50ms":                "did not answer in time",
	} {
		expect(t, refuse(t, url), FaultUnreachable, says)
	}
}

// A wrong port is named as such: a web server does not lack Redis, and a plain Redis is not too old to be a Sentinel.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	expect(t, refuse(t, "redis://"+web.Listener.Addr().String()), FaultUnreachable, "does not speak the Redis protocol")
	expect(t, refuse(t, strings.Replace(redisrun.New(t).URL(), "redis://", "redis+sentinel://", 1)+"/m"), FaultUnfit, "is not a Sentinel")
}

// Dial returns when its context ends, whatever the timeout.
func TestDialIsGivenUp(t *testing.T) {
	t.Parallel()
	silent := newFake(t, nil)
	for scheme, path := range map[string]string{"redis": "", "redis+cluster": "", "redis+sentinel": "/m", "rediss": ""} {
		a, err := Parse(scheme + "://" + silent.Addr().String() + path + "?timeout=1m")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		began := time.Now()
		_, err = Dial(ctx, a)
		cancel()
		expect(t, err, FaultUnreachable, "did not answer in time")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > within {
			t.Errorf("%s: %v after %v", scheme, err, time.Since(began))
		}
	}
}

func TestUsersAndRights(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	for _, user := range []string{
		"all on >pw ~* &* +@all",
		"enough on >p/w ~sluice:* &sluice:* +@all -@dangerous",
		"channels on >pw ~sluice:* resetchannels +@all",
		"keys on >pw ~other:* &* +@all",
		"eval on >pw ~* &* +@all -eval",
		"inside on >pw ~* &* +@all -exists",
		"evalsha on >pw ~* &* +@all -evalsha",
		"write on >pw ~* &* +@all -incr",
	} {
		if _, err := server.Do(bounded(t), append([]string{"ACL", "SETUSER"}, strings.Fields(user)...)...); err != nil {
			t.Fatal(err)
		}
	}
	as := func(login, more string) string { return "redis://" + login + "@" + server.Addr() + more }
	for login, says := range map[string]string{
		"channels:pw": "&sluice:*",
		"keys:pw":     "~sluice:*",
		"eval:pw":     "'eval'",
		"inside:pw":   "can't run this command",
		"all:no":      "does not accept this user and password",
		"nobody:pw":   "does not accept this user and password",
	} {
		expect(t, refuse(t, as(login, "")), FaultUnfit, says)
	}
	expect(t, refuse(t, as("all:pw", "/99")), FaultUnfit, "no database of that number")
	expect(t, refuse(t, as("keys:pw", "?prefix=mine")), FaultUnfit, "~mine:* &mine:*")

	counted(t, open(t, as("keys:pw", "?prefix=other")), "other:k", "1")
	enough := open(t, as("enough:p%2Fw", ""))
	counted(t, enough, "sluice:k", "1")
	if !strings.HasPrefix(enough.Server(), "Redis ") && !strings.HasPrefix(enough.Server(), "Valkey ") {
		t.Errorf("server %q", enough.Server())
	}
	for login, says := range map[string]string{"evalsha:pw": "'evalsha'", "write:pw": "can't run this command"} {
		_, err := open(t, as(login, "")).Run(bounded(t), count, "sluice:k")
		expect(t, err, FaultUnfit, says)
	}
}

func TestPasswordWanted(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	if _, err := server.Do(bounded(t), "CONFIG", "SET", "requirepass", "hunter2"); err != nil {
		t.Fatal(err)
	}
	expect(t, refuse(t, server.URL()), FaultUnfit, "Redis wants a password")
	counted(t, open(t, "redis://:hunter2@"+server.Addr()), "k", "1")
	counted(t, l, "k", "2") // who is in stays in
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	first, second := open(t, server.URL()), open(t, server.URL()+"/5")
	counted(t, first, "k", "1")
	counted(t, first, "k", "2")
	counted(t, second, "k", "1")
}
