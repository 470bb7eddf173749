package redisstore

import (
	_ "embed"
	"strings"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

//go:generate go run ./internal/golua/generate

//go:embed lua/runtime.lua
var luaRuntime string

//go:embed lua/pool.lua
var luaPool string

//go:embed lua/main.lua
var luaMain string

//go:embed lua/open.lua
var luaOpen string

// applySource returns the script that decides a batch.
func applySource() string { return luaRuntime + luaPool + luaMain }

// clockLine is where a script reads the clock. Tests replace it.
const clockLine = "local t = call('TIME') local clock = t[1] * 1000000 + t[2]"

// atGivenTime returns the script with the clock of a test: the time is its last argument.
func atGivenTime(src string) string {
	if strings.Count(src, clockLine) != 1 {
		panic("redisstore: the script does not read the clock in one line")
	}
	src = strings.Replace(src, "local exact = false", "local exact = true", 1) // tests then fail on products that are not exact
	return strings.Replace(src, clockLine, "local clock = tonumber(ARGV[#ARGV])", 1)
}

// keys returns the keys of the pool. It has only one, so that it exists as a whole or not at all.
func (st *state) keys() []string { return []string{st.key} }

// args returns the arguments of a call in the order in which lua/main.lua reads them.
func (st *state) args(p pipe, at position, latest store.Time, blob, mode string) []string {
	s := st.store
	of, had := p.had.since(at.epoch)
	if s.fixed { // the test's clock may have passed the ten minutes for which replies are kept
		had = 0
	}
	numbers := pool.Pack([]float64{
		float64(p.seq), float64(at.version), float64(at.epoch), float64(at.sequence), float64(s.process), float64(latest), float64(p.id), float64(of), float64(had),
	})
	return s.withClock([]string{numbers, blob, mode, st.channel()})
}
