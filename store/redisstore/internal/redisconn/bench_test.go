package redisconn

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// BenchmarkRun compares a script through a link with the same through rueidis as it comes.
func BenchmarkRun(b *testing.B) {
	server := redisrun.New(b)
	s := NewScript("redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]")
	arg := strings.Repeat("x", 2000)
	a, err := Parse(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: a.Hosts, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(raw.Close)
	lua := rueidis.NewLuaScript(s.source)
	for _, callers := range []int{1, 16} {
		run := func(name string, one func(ctx context.Context) error) {
			b.Run(fmt.Sprintf("%s/callers=%d", name, callers), func(b *testing.B) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				b.ReportAllocs()
				var left atomic.Int64
				left.Store(int64(b.N))
				done := make(chan error, callers)
				b.ResetTimer()
				for range callers {
					go func() {
						var err error
						for err == nil && left.Add(-1) >= 0 {
							err = one(ctx)
						}
						done <- err
					}()
				}
				for range callers {
					if err := <-done; err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		l, err := Dial(context.Background(), a) // a new one, whose connection is not pipelined yet
		if err != nil {
			b.Fatal(err)
		}
		run("link", func(ctx context.Context) error {
			_, err := l.Run(ctx, s, "k", arg)
			return err
		})
		l.Close()
		run("rueidis", func(ctx context.Context) error {
			return lua.Exec(ctx, raw, []string{"k"}, []string{arg}).Error()
		})
	}
}
