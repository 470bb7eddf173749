
-- One call: the batch, then everything that has changed in one command.
local function finish(meta)
 local set, del = {}, {}
 local ns = 0
 local gone = {}
 for i = 1, #dropped do
  local r = dropped[i]
  for p = 0, floor((r.n - 1) / page) do gone[r.f .. p] = true end
 end
 for i = 1, nloaded do
  local r, from, n = loaded[i], froms[i], sizes[i]
  local v = packd(formatOf(n), unpack(r, from + 1, from + n))
  gone[fields[i]] = nil
  if v ~= values[i] then
   set[ns + 1], set[ns + 2] = fields[i], v
   ns = ns + 2
  end
 end
 for f, l in pairs(entered) do
  if #l == 0 then del[#del + 1] = f
  else set[ns + 1], set[ns + 2] = f, table.concat(l, ',') ns = ns + 2 end
 end
 for f, v in pairs(puts) do
  if v == false then del[#del + 1] = f
  else set[ns + 1], set[ns + 2] = f, v ns = ns + 2 end
 end
 for f in pairs(gone) do del[#del + 1] = f end
 for i = 1, #del, 2000 do call('HDEL', K, unpack(del, i, min(i + 1999, #del))) end
 set[ns + 1], set[ns + 2] = 'v', meta
 ns = ns + 2
 for i = 1, ns, 2000 do call('HSET', K, unpack(set, i, min(i + 1999, ns))) end
end

local t = call('TIME') local clock = t[1] * 1000000 + t[2]
-- A call that was made before is answered and not made again; one that was given up is never made.
local seq = tonumber(ARGV[1])
local last = call('GET', KEYS[2])
if last then
 local before = unpackd('<d', last)
 if before == seq then return sub(last, 9) end
 if before > seq then return cmsgpack.pack({'late', clock}) end
end
local function answer(out)
 local reply = cmsgpack.pack(out)
 call('SET', KEYS[2], packd('<d', seq) .. reply, 'PX', 600000)
 return reply
end
if ARGV[8] == 'void' then return answer({'void', clock}) end
local ahead = {'v', 'once.0', 'once.1', 'once.2', 'once.3', 'once.4', 'once.5', 'heads.0', 'heads.1', 'heads.2', 'heads.3', 'counts', 'sum', 'cfg.0', 'cfg.1', 'cfg.2', 'cfg.3', 'cfg.4'}
local got = call('HMGET', K, unpack(ahead))
for i = 1, #ahead do raw[ahead[i]] = got[i] end
if not got[1] then return cmsgpack.pack({'none', clock}) end
-- version of the configuration, sequence, epoch, when the expiry was last set, how long the keys live
local version, sequence, epoch, expires, ttl = unpackd('<ddddd', got[1])
if version ~= tonumber(ARGV[2]) or epoch ~= tonumber(ARGV[3]) then return cmsgpack.pack({'other', clock, version, sequence, epoch}) end
if sequence < tonumber(ARGV[4]) then return cmsgpack.pack({'behind', clock, version, sequence, epoch}) end
-- The caller says how late it can be at most: a clock that has been put forward would give back too early.
local latest = tonumber(ARGV[9])
if latest > 0 and clock > latest then return cmsgpack.pack({'jump', clock, version, sequence, epoch}) end
open()
local ops = cmsgpack.unpack(ARGV[5])
F.pool_Pool_Apply(clock, ops)
sequence = sequence + 1
local mine, others = {}, {}
local me = tonumber(ARGV[6])
for _, id in ipairs(T[2]) do
 local process = floor(id[1] / 65536)
 local l = mine
 if process ~= me then
  l = others[process]
  if not l then l = {} others[process] = l end
 end
 l[#l + 1] = id[1]
 l[#l + 1] = id[2]
end
for process, l in pairs(others) do call('PUBLISH', format('%s%.0f', ARGV[7], process), cmsgpack.pack(l)) end
local out = {'ok', once[1], version, sequence, epoch, once[2], counts[3], mine}
local n = #out
for i = 1, #ops do
 local op = ops[i]
 for k = 1, resultSlots do out[n + k] = op[resultAt + k] end
 n = n + resultSlots
end
if clock - expires > ttl / 8 then
 expires = clock
 call('PEXPIRE', K, format('%.0f', ttl / 1000))
end
finish(packd('<ddddd', version, sequence, epoch, expires, ttl))
return answer(out)
