
-- One call: the batch, then everything that has changed in one command.
local function finish(meta)
 local set, del, ns, nd = {'HSET', K, 'v', meta}, {}, 4, 0
 for i = 1, ntouched do
  local s, k = slabs[i], numbersOf[i]
  local r = touched[i]
  local v = packd(formatOf(s.n + 1), r.link, unpack(r, 1, s.n))
  if v ~= s.was[k] then
   set[ns + 1], set[ns + 2] = s.k .. k, v
   ns = ns + 2
   s.was[k] = v
  end
  s[k] = nil
 end
 for i = 1, nmoved do
  local s = moved[i]
  s.moved = nil
  set[ns + 1], set[ns + 2] = 'h' .. s.k, packd('<ddd', s.used, s.free, s.idle)
  ns = ns + 2
 end
 local gone = ncleared > 0 and {}
 for i = 1, ncleared do
  for p = 0, largest do gone[cleared[i] .. p] = true end
 end
 for i = 1, nturned do
  local l = turned[i]
  l.dirty = nil
  if not l.gone then
   if gone then gone[l.f] = nil end
   set[ns + 1], set[ns + 2] = l.f, packd(formatOf(page), unpack(l, 1, page))
   ns = ns + 2
  end
 end
 for i = 1, nentered do
  local l = entered[i]
  l.dirty = nil
  if #l == 0 then nd = nd + 1 del[nd] = l.f
  else set[ns + 1], set[ns + 2] = l.f, table.concat(l, ',') ns = ns + 2 end
 end
 if nputs > 0 then
  local final = {}
  for i = 1, nputs do final[puts[i]] = puts[-i] end
  for f, v in pairs(final) do
   if v == false then nd = nd + 1 del[nd] = f
   else set[ns + 1], set[ns + 2] = f, v ns = ns + 2 end
  end
 end
 if gone then
  for f in pairs(gone) do nd = nd + 1 del[nd] = f end
 end
 for i = 1, nd, 2000 do call('HDEL', K, unpack(del, i, min(i + 1999, nd))) end
 if ns <= 4000 then call(unpack(set, 1, ns))
 else
  for i = 3, ns, 2000 do call('HSET', K, unpack(set, i, min(i + 1999, ns))) end
 end
end

local function main(KEYS, ARGV)
bind()
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
K = KEYS[1]
local v = call('HGET', K, 'v')
if not v then return cmsgpack.pack({'none', clock}) end
-- version of the configuration, sequence, epoch, when the expiry was last set, how long the keys live
local version, sequence, epoch, expires, ttl = unpackd('<ddddd', v)
if version ~= tonumber(ARGV[2]) or epoch ~= tonumber(ARGV[3]) then return cmsgpack.pack({'other', clock, version, sequence, epoch}) end
if sequence < tonumber(ARGV[4]) then return cmsgpack.pack({'behind', clock, version, sequence, epoch}) end
-- The caller says how late it can be at most: a clock that has been put forward would give back too early.
local latest = tonumber(ARGV[9])
if latest > 0 and clock > latest then return cmsgpack.pack({'jump', clock, version, sequence, epoch}) end
local ops = cmsgpack.unpack(ARGV[5])
open(v)
F.pool_Pool_Apply(clock, ops)
sequence = sequence + 1
local mine = {}
local decided = T[2]
if #decided > 0 then
 local others, me = {}, tonumber(ARGV[6])
 for i = 1, #decided do
  local id = decided[i]
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
end
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
v = packd('<ddddd', version, sequence, epoch, expires, ttl)
finish(v)
close(v)
return answer(out)
end
