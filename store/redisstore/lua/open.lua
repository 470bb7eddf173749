-- What is done to a pool as a whole, apart from batches: looking at it, making it, giving it other
-- limits, and noting that it has lost its memory.
-- KEYS[2] is the journal: who comes first in a pool that was made anew must not find an old one.
local K, call, what = KEYS[1], redis.call, ARGV[1]
local t = call('TIME') local clock = t[1] * 1000000 + t[2]
local function put(list)
 for i = 1, #list, 2000 do call('HSET', K, unpack(list, i, math.min(i + 1999, #list))) end
end
if what == 'look' then
 local got = call('HMGET', K, 'v', 's')
 return cmsgpack.pack({clock, got[1] or '', got[2] or '', call('LLEN', KEYS[2])}) -- calls since v was written
end
local v = call('HGET', K, 'v')
if what == 'make' then
 if v then return 'taken' end
 call('DEL', K, KEYS[2])
 put(cmsgpack.unpack(ARGV[2]))
 call('PEXPIRE', K, ARGV[3])
 return 'ok'
end
if not v then return 'none' end
local version, sequence, epoch, expires, ttl = struct.unpack('<ddddd', v)
if what == 'reform' then
 if call('LLEN', KEYS[2]) > 0 or version ~= tonumber(ARGV[2]) or sequence ~= tonumber(ARGV[3]) or epoch ~= tonumber(ARGV[4]) then return 'moved' end
 local del = cmsgpack.unpack(ARGV[6])
 for i = 1, #del, 2000 do call('HDEL', K, unpack(del, i, math.min(i + 1999, #del))) end
 put(cmsgpack.unpack(ARGV[5]))
 call('HSET', K, 'v', struct.pack('<ddddd', version + 1, tonumber(ARGV[9]), tonumber(ARGV[10]), 0, tonumber(ARGV[7])))
 local told = cmsgpack.unpack(ARGV[8]) -- channel, message, and so on
 for i = 1, #told, 2 do call('PUBLISH', told[i], told[i + 1]) end
 return 'ok'
end
