-- Operations on a pool as a whole, apart from batches: read its head, create it, replace its limits or its epoch, move it
-- aside, and keep what processes state. The first argument names the operation.
-- The fields v and q both have the sequence: v as of the last write of all records, q as of the last call.
local K, call, what = KEYS[1], redis.call, ARGV[1]
local t = call('TIME') local clock = t[1] * 1000000 + t[2]
local function put(list)
 for i = 1, #list, 2000 do call('HSET', K, unpack(list, i, math.min(i + 1999, #list))) end
end
local kind = call('TYPE', K)
kind = kind.ok or kind
-- A hash with only the field lost stands for a pool that a repair has moved aside. The value is above all epochs that the
-- pool had.
local lost = kind == 'hash' and tonumber(call('HGET', K, 'lost') or nil)
-- Processes that use the pool listen on channels that match ARGV[2]. If they listen and there is no pool, it was lost. A
-- server that does not tell counts as having none.
local function listeners(but)
 local ok, all = pcall(call, 'PUBSUB', 'CHANNELS', ARGV[2])
 local out = {}
 for _, channel in ipairs(ok and all or {}) do
  if channel ~= but then out[#out + 1] = channel end
 end
 return out
end
if what == 'look' then
 local flaw, got = '', {}
 if kind ~= 'hash' and kind ~= 'none' then flaw = 'it is a ' .. kind .. ', not a hash'
 elseif kind == 'hash' and not lost then
  local names = {'v', 's', 'q', 'f', 'once'}
  got = call('HMGET', K, unpack(names))
  for i = 1, 5 do
   if flaw == '' and not got[i] then flaw = 'the field ' .. names[i] .. ' is missing' end
  end
  if flaw == '' and #got[1] ~= 40 then flaw = 'the field v has foreign content' end
  if flaw == '' and #got[3] ~= 16 then flaw = 'the field q has foreign content' end
  for i = 1, flaw == '' and 5 or 0 do
   local x = struct.unpack('<d', got[1], 8 * i - 7)
   if x % 1 ~= 0 or math.abs(x) > 9007199254740992 then flaw = 'the field v has foreign content' end
  end
  local made = flaw == '' and struct.unpack('<d', got[3]) or 0
  if made % 1 ~= 0 or math.abs(made) > 9007199254740992 then flaw = 'the field q has foreign content' end
 end
 if flaw ~= '' then got = {} end
 return cmsgpack.pack({clock, got[1] or '', got[2] or '', got[3] and struct.unpack('<d', got[3]) or 0, got[4] or '', got[5] or '', flaw, lost or 0,
  kind == 'none' and #listeners(ARGV[3]) or 0})
end
if what == 'aside' then -- move the pool to the second key, where it expires
 if kind == 'none' or lost then return 'none' end
 call('RENAME', K, KEYS[2])
 call('PEXPIRE', KEYS[2], ARGV[2])
 call('HSET', K, 'lost', ARGV[3])
 call('PEXPIRE', K, ARGV[4])
 return 'ok'
end
if what == 'make' then
 if kind ~= 'none' and not lost then return 'taken' end
 call('DEL', K)
 put(cmsgpack.unpack(ARGV[4]))
 call('PEXPIRE', K, ARGV[5])
 for _, channel in ipairs(listeners(ARGV[3])) do call('PUBLISH', channel, '') end -- they look soon
 return 'ok'
end
-- The second key has a field for each process: when it last stated its limits, and the statement. The field revision
-- counts changes.
if what == 'state' then
 local S, who = KEYS[2], ARGV[2]
 local was = call('HGET', S, who)
 if ARGV[3] == '' then
  if was then call('HDEL', S, who) call('HINCRBY', S, 'revision', 1) end
  return 'ok'
 end
 if not was or string.sub(was, 9) ~= ARGV[3] then
  if call('HINCRBY', S, 'revision', 1) % 64 == 0 then -- now and then, forget processes that ended without leaving
   local all = call('HGETALL', S)
   for i = 1, #all, 2 do
    if #all[i + 1] >= 8 and all[i] ~= 'revision' and struct.unpack('<d', all[i + 1]) < clock - tonumber(ARGV[4]) * 1000 then call('HDEL', S, all[i]) end
   end
  end
 end
 call('HSET', S, who, struct.pack('<d', clock) .. ARGV[3])
 call('PEXPIRE', S, ARGV[4])
 return 'ok'
end
if what == 'stated' then
 local out = {clock, call('HGET', KEYS[2], 'revision') or '0'}
 local all = ARGV[2] == '' and call('HGETALL', KEYS[2]) or {ARGV[2], call('HGET', KEYS[2], ARGV[2]) or ''}
 for i = 1, #all do out[i + 2] = all[i] end
 return cmsgpack.pack(out)
end
local v, q = call('HGET', K, 'v'), call('HGET', K, 'q')
if not v or not q then return 'none' end
local version, sequence, epoch, expires, ttl = struct.unpack('<ddddd', v)
if what == 'reform' then
 if struct.unpack('<d', q) ~= sequence or version ~= tonumber(ARGV[2]) or sequence ~= tonumber(ARGV[3]) or epoch ~= tonumber(ARGV[4]) then return 'moved' end
 if ARGV[11] ~= '' and (call('HGET', KEYS[2], 'revision') or '0') ~= ARGV[11] then return 'moved' end
 local del = cmsgpack.unpack(ARGV[6])
 for i = 1, #del, 2000 do call('HDEL', K, unpack(del, i, math.min(i + 1999, #del))) end
 put(cmsgpack.unpack(ARGV[5]))
 call('HSET', K, 'v', struct.pack('<ddddd', version + 1, tonumber(ARGV[9]), tonumber(ARGV[10]), 0, tonumber(ARGV[7])),
  'q', struct.pack('<dd', tonumber(ARGV[9]), clock))
 local told = cmsgpack.unpack(ARGV[8]) -- channel, message, and so on
 for i = 1, #told, 2 do call('PUBLISH', told[i], told[i + 1]) end
 return 'ok'
end
