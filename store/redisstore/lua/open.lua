-- What is done to a pool as a whole, apart from batches: looking at it, making it, giving it other
-- limits, and noting that it has lost its memory.
-- The field q says how many calls there were, which v does as of when it was written.
local K, call, what = KEYS[1], redis.call, ARGV[1]
local t = call('TIME') local clock = t[1] * 1000000 + t[2]
local function put(list)
 for i = 1, #list, 2000 do call('HSET', K, unpack(list, i, math.min(i + 1999, #list))) end
end
if what == 'look' then
 local got = call('HMGET', K, 'v', 's', 'q', 'f', 'once')
 return cmsgpack.pack({clock, got[3] and got[1] or '', got[2] or '', got[3] and struct.unpack('<d', got[3]) or 0, got[4] or '', got[5] or ''})
end
local v, q = call('HGET', K, 'v'), call('HGET', K, 'q')
if what == 'make' then
 if v and q then return 'taken' end
 call('DEL', K)
 put(cmsgpack.unpack(ARGV[2]))
 call('PEXPIRE', K, ARGV[3])
 return 'ok'
end
if not v or not q then return 'none' end
local version, sequence, epoch, expires, ttl = struct.unpack('<ddddd', v)
if what == 'reform' then
 if struct.unpack('<d', q) ~= sequence or version ~= tonumber(ARGV[2]) or sequence ~= tonumber(ARGV[3]) or epoch ~= tonumber(ARGV[4]) then return 'moved' end
 local del = cmsgpack.unpack(ARGV[6])
 for i = 1, #del, 2000 do call('HDEL', K, unpack(del, i, math.min(i + 1999, #del))) end
 put(cmsgpack.unpack(ARGV[5]))
 call('HSET', K, 'v', struct.pack('<ddddd', version + 1, tonumber(ARGV[9]), tonumber(ARGV[10]), 0, tonumber(ARGV[7])),
  'q', struct.pack('<dd', tonumber(ARGV[9]), clock))
 local told = cmsgpack.unpack(ARGV[8]) -- channel, message, and so on
 for i = 1, #told, 2 do call('PUBLISH', told[i], told[i + 1]) end
 return 'ok'
end
