package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// script is a Lua script. All of them touch only the keys that they are given.
type script struct{ source, sha string }

func newScript(source string) *script {
	sum := sha1.Sum([]byte(source)) // how Redis names scripts, not for security
	return &script{source, hex.EncodeToString(sum[:])}
}

// now is the beginning of most scripts.
const now = "local t = redis.call('TIME') t = t[1] * 1000000 + t[2]\n"

// appendScript stamps an entry and appends it, and returns the length of the segment; the reader finds the stamp in front of
// that. If the segment was missing, APPEND has made it, and it is deleted.
var appendScript = newScript(`local t = redis.call('TIME')
local n = redis.call('APPEND', KEYS[1], ARGV[1] .. struct.pack('<I7', t[1] * 1000000 + t[2]))
if n == #ARGV[1] + 7 then
  redis.call('DEL', KEYS[1])
  return false
end
return n`)

// run is what the server calls itself from its start to its end; empty without the right to know.
const run = "local run = redis.pcall('INFO', 'server')\nrun = type(run) == 'string' and string.match(run, 'run_id:(%w+)') or ''\n"

// headScript reads what the log is, and whether a segment is there.
var headScript = newScript(now + run + `local h = redis.call('HMGET', KEYS[1], 'f', 'incarnation', 'segment', 'snapshot', 'size', 'origin', 'run')
for i = 1, 7 do h[i] = h[i] or '' end
h[8] = tostring(redis.call('EXISTS', KEYS[1]))
return {t, redis.call('EXISTS', KEYS[2]), h, run}`)

// forOthers has releases that kept the pool itself in this hash refuse it: they find what they expect there, and the field f
// says that another version wrote it.
const forOthers = "redis.call('HSET', KEYS[1], 'v', string.rep('\\0', 40), 's', '', 'q', string.rep('\\0', 16), 'once', '')\n"

// createScript begins a log with nothing, unless there is one, or survivors of one have posted.
var createScript = newScript(`if redis.call('EXISTS', KEYS[1]) == 1 then return 'taken' end
if redis.call('EXISTS', KEYS[3]) == 1 then return 'lost' end
` + run + `redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
redis.call('HSET', KEYS[1], 'f', ARGV[1], 'incarnation', ARGV[2], 'segment', '0', 'run', run)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
` + forOthers + `return 'ok'`)

// compactScript begins a new segment with an uploaded snapshot and what follows it.
var compactScript = newScript(`local h = redis.call('HMGET', KEYS[1], 'incarnation', 'segment')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 'taken' end
local rest = redis.call('GETRANGE', KEYS[2], ARGV[4], -1)
if string.sub(rest, 1, 7) ~= ARGV[5] then return 'lost' end
if redis.call('STRLEN', KEYS[4]) ~= tonumber(ARGV[8]) then return 'again' end
redis.call('SET', KEYS[5], ARGV[6] .. rest)
redis.call('RENAME', KEYS[2], KEYS[3])
redis.call('PEXPIRE', KEYS[3], ARGV[9])
redis.call('PERSIST', KEYS[4])
local ttl = redis.call('PTTL', KEYS[1])
if ttl > 0 then redis.call('PEXPIRE', KEYS[4], ttl) redis.call('PEXPIRE', KEYS[5], ttl) end
redis.call('HSET', KEYS[1], 'segment', ARGV[3], 'snapshot', ARGV[7], 'size', ARGV[8])
if KEYS[6] then redis.call('PEXPIRE', KEYS[6], ARGV[10]) end
return 'ok'`)

// reviveScript begins an incarnation with an uploaded snapshot, if the log is still what the caller found.
var reviveScript = newScript(`local h = redis.call('HMGET', KEYS[1], 'incarnation', 'segment')
if (h[1] or '') ~= ARGV[1] or (h[2] or '') ~= ARGV[2] then return 'taken' end
if redis.call('STRLEN', KEYS[3]) ~= tonumber(ARGV[7]) then return 'again' end
redis.call('SET', KEYS[2], ARGV[5], 'PX', ARGV[10])
redis.call('PEXPIRE', KEYS[3], ARGV[10])
redis.call('DEL', KEYS[1], KEYS[4])
if KEYS[5] then redis.call('DEL', KEYS[5]) end
if KEYS[6] then redis.call('PEXPIRE', KEYS[6], ARGV[9]) end
` + run + `redis.call('HSET', KEYS[1], 'f', ARGV[3], 'incarnation', ARGV[4], 'segment', '0', 'snapshot', ARGV[6], 'size', ARGV[7], 'origin', ARGV[8], 'run', run)
redis.call('PEXPIRE', KEYS[1], ARGV[10])
` + forOthers + `return 'ok'`)

// keepScript sets when the keys of a log expire, if they are still those that the caller found.
var keepScript = newScript(`local h = redis.call('HMGET', KEYS[1], 'incarnation', 'segment')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 'taken' end
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 'ok'`)

// postScript keeps the position of a survivor, with the time, and returns those of all.
var postScript = newScript(now + `local fresh = redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', t) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {t, redis.call('HGETALL', KEYS[1]), fresh}`)

// atGivenTime returns the script with its last argument instead of the server's clock.
func (s *script) atGivenTime() *script {
	return newScript(strings.Replace(s.source, "redis.call('TIME')", "{math.floor(ARGV[#ARGV] / 1000000), ARGV[#ARGV] % 1000000}", 1))
}

// run runs a script. If the server does not know it yet, nothing has happened, and run sends the source.
func (c *conn) run(ctx context.Context, s *script, keys []string, args ...string) (rueidis.RedisResult, error) {
	got, err := c.runWith(ctx, s, keys, args, nil)
	if err != nil {
		return rueidis.RedisResult{}, err
	}
	if err := got[0].Error(); err != nil && !rueidis.IsRedisNil(err) {
		return got[0], c.fail(err)
	}
	return got[0], nil
}

// runWith runs a script and, in the same round trip, the command that beside returns, if it is not nil.
func (c *conn) runWith(ctx context.Context, s *script, keys, args []string, beside func() rueidis.Completed) ([]rueidis.RedisResult, error) {
	if c.time != nil {
		s, args = s.atGivenTime(), append(args, strconv.FormatInt(int64(c.time()), 10))
	}
	n := int64(len(keys))
	commands := make([]rueidis.Completed, 1, 2)
	commands[0] = c.client.B().Evalsha().Sha1(s.sha).Numkeys(n).Key(keys...).Arg(args...).Build()
	if beside != nil {
		commands = append(commands, beside())
	}
	got, err := c.do(ctx, commands...)
	if err != nil || !replied(got[0].Error(), "NOSCRIPT") {
		return got, err
	}
	commands[0] = c.client.B().Eval().Script(s.source).Numkeys(n).Key(keys...).Arg(args...).Build()
	if beside != nil {
		commands[1] = beside()
	}
	return c.do(ctx, commands...)
}
