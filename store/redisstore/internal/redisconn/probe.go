package redisconn

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisfault"
)

// server describes the server.
type server struct {
	name         string // such as Redis
	version      string // its own version
	major, minor int    // of the Redis version that it is compatible with
	mode         string // standalone, cluster or sentinel
}

func (s server) String() string { return strings.TrimSpace(s.name + " " + s.version) }

// hasFunctions reports whether the server has functions, which came with Redis 7.
func (s server) hasFunctions() bool { return s.major >= 7 }

// probe checks in one round trip whether the server can be used: its version, Lua, and the permissions for our keys and
// channels. It writes nothing.
func (l *Link) probe(ctx context.Context) error {
	if l.address.Mode == Cluster && l.client.Mode() != rueidis.ClientModeCluster {
		return l.unfit("this Redis is not part of a cluster", "use redis:// for a single server")
	}
	name := l.address.Prefix + ":probe"
	const source = "redis.call('EXISTS', KEYS[1]) redis.call('PUBLISH', ARGV[1], '') return 'ok'"
	results, err := l.callAll(ctx, l.client,
		l.client.B().Info().Section("server").Build(),
		l.client.B().Eval().Script(source).Numkeys(1).Key(name).Arg(name).Build())
	if err != nil {
		return err
	}
	info, err := results[0].ToString()
	switch {
	case err == nil:
		l.server = readInfo(info)
	case replied(err, "noperm"): // users often may not call INFO; HELLO is enough
		if l.server, err = l.hello(ctx); err != nil {
			return err
		}
	default:
		return err
	}
	if err := l.fits(); err != nil {
		return err
	}
	return l.scripts(results[1].Error())
}

func (l *Link) fits() error {
	s := l.server
	switch {
	case s.major == 0:
		return l.unfit("the server does not say its version, so it is not Redis", "use Redis "+redisfault.Oldest+" or later, or Valkey")
	case s.major < 6 || s.major == 6 && s.minor < 2:
		return l.unfit(fmt.Sprintf("%v is too old: %s or later is needed", s, redisfault.Oldest), "update it, or use another")
	case s.mode == "sentinel":
		return l.unfit("this is a sentinel, which holds no data", "use redis+sentinel://host:port/MASTER")
	case s.mode == "cluster" && l.address.Mode == Single:
		return l.unfit("this Redis is part of a cluster", "use redis+cluster://host:port")
	}
	return nil
}

func (l *Link) unfit(what, hint string) error {
	return &Error{Fault: FaultUnfit, at: l.name, what: what, hint: hint}
}

// scripts returns an error if the script of probe failed.
func (l *Link) scripts(err error) error {
	if replied(err, "unknown command") || replied(err) && redisfault.Judge(err).Fault == FaultScript {
		return l.unfit(redisfault.NoLua.What, redisfault.NoLua.Hint)
	}
	return err
}

// callAll sends commands in one round trip. It returns when ctx ends; see call.
func (l *Link) callAll(ctx context.Context, to rueidis.Client, commands ...rueidis.Completed) ([]rueidis.RedisResult, error) {
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	done := make(chan []rueidis.RedisResult, 1)
	go func() {
		results := to.DoMulti(context.Background(), commands...)
		l.leave(results[0].NonRedisError())
		done <- results
	}()
	select {
	case results := <-done:
		return results, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readInfo parses the reply of INFO server. Valkey and other compatible servers state a Redis version too.
func readInfo(info string) server {
	fields := map[string]string{}
	for line := range strings.SplitSeq(info, "\n") {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	s := server{name: "Redis", version: fields["redis_version"], mode: fields["redis_mode"]}
	s.major, s.minor = readVersion(s.version)
	if v := fields["valkey_version"]; v != "" {
		s.name, s.version = "Valkey", v
	}
	return s
}

// hello gets the version with HELLO, which every user may call.
func (l *Link) hello(ctx context.Context) (server, error) {
	results, err := l.callAll(ctx, l.client, l.client.B().Arbitrary("HELLO").Build())
	if err != nil {
		return server{}, err
	}
	said, err := results[0].AsMap()
	if err != nil {
		return server{}, err
	}
	field := func(name string) string {
		message := said[name]
		value, _ := message.ToString()
		return value
	}
	s := server{name: "Redis", version: field("version"), mode: field("mode")}
	s.major, s.minor = readVersion(s.version)
	if field("server") == "valkey" { // states its own version here; all versions are compatible with Redis 7.2
		s.name, s.major, s.minor = "Valkey", 7, 2
	}
	return s, nil
}

func readVersion(s string) (major, minor int) {
	parts := strings.SplitN(s, ".", 3)
	major, err := strconv.Atoi(parts[0])
	if err != nil || major < 0 {
		return 0, 0
	}
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	return major, minor
}
