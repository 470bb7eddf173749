package redisstore

import (
	"context"
	_ "embed"
	"strings"
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

// applySource is the script that decides a batch. It reads the clock once, in the line that tests
// replace.
func applySource() string { return luaRuntime + luaPool + luaMain }

const clockLine = "local t = call('TIME') local clock = t[1] * 1000000 + t[2]"

// atGivenTime is the script with the clock in the hands of a test: the time is the last argument.
func atGivenTime(src string) string {
	if strings.Count(src, clockLine) != 1 {
		panic("redisstore: the script does not read the clock in one line")
	}
	return strings.Replace(src, clockLine, "local clock = tonumber(ARGV[#ARGV])", 1)
}

// keys are the pool's: its state, the reply that a lane remembers, and the journal of what is not yet
// written to the state.
func (st *state) keys(lane string) []string { return []string{st.key, lane, st.key + ":j"} }

// readAll has the state written and reads all of it: the time, and then fields and values.
func (st *state) readAll(ctx context.Context) (string, error) {
	args := []string{"0", "0", "0", "0", string(appendArray(nil, 0)), "0", st.channel(), "write", "0"}
	reply, err := st.store.link.RunKeys(ctx, st.store.apply, st.keys(st.key+":r"), st.store.withClock(args)...)
	return reply, unavailable(err)
}
