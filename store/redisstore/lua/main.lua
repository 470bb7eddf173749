
-- The hash is written when there is much to write, or for those who read it. Until then what is decided
-- is in the journal: batches with their times, which lead to the same state again.
local mostCalls, mostItems, longest = 64, 512, 200000
local function finish()
 local w = known
 local set, del, ns, nd = {}, {}, 0, 0
 for i = 1, w.ntouched do
  local s, k, r = w.slabOf[i], w.numberOf[i], w.touched[i]
  local v = packd(formatOf(s.n + 1), r.link, unpack(r, 1, s.n))
  if v ~= s.was[k] then
   set[ns + 1], set[ns + 2] = s.k .. k, v
   ns = ns + 2
   s.was[k] = v
  end
  s[k] = nil
 end
 for i = 1, w.nmoved do
  local s = w.moved[i]
  s.moved = nil
  set[ns + 1], set[ns + 2] = 'h' .. s.k, packd('<ddd', s.used, s.free, s.idle)
  ns = ns + 2
 end
 local gone = w.ncleared > 0 and {}
 for i = 1, w.ncleared do
  for p = 0, largest do gone[w.cleared[i] .. p] = true end
 end
 for i = 1, w.nturned do
  local l = w.turned[i]
  l.dirty = nil
  if not l.gone then
   if gone then gone[l.f] = nil end
   set[ns + 1], set[ns + 2] = l.f, packd(formatOf(page), unpack(l, 1, page))
   ns = ns + 2
  end
 end
 for i = 1, w.nentered do
  local l = w.entered[i]
  l.dirty = nil
  if #l == 0 then nd = nd + 1 del[nd] = l.f
  else set[ns + 1], set[ns + 2] = l.f, table.concat(l, ',') ns = ns + 2 end
 end
 if w.nputs > 0 then
  local final = {}
  for i = 1, w.nputs do final[w.puts[i]] = w.puts[-i] end
  for f, v in pairs(final) do
   if v == false then nd = nd + 1 del[nd] = f
   else set[ns + 1], set[ns + 2] = f, v ns = ns + 2 end
  end
 end
 local lots = writeLots()
 if lots then set[ns + 1], set[ns + 2] = 'lots', lots ns = ns + 2 end
 if gone then
  for f in pairs(gone) do nd = nd + 1 del[nd] = f end
 end
 for i = 1, nd, 2000 do call('HDEL', K, unpack(del, i, min(i + 1999, nd))) end
 for i = 1, ns, 2000 do call('HSET', K, unpack(set, i, min(i + 1999, ns))) end
 nothingChanged(w)
 again()
end

-- answer keeps a reply in case that it is lost, and sends it.
local function answer(key, seq, out)
 local reply = cmsgpack.pack(out)
 call('SET', key, packd('<d', seq) .. reply, 'PX', 600000)
 return reply
end

-- passing tells that nothing is kept between calls.
local function main(KEYS, ARGV, passing)
bind()
local t = call('TIME') local clock = t[1] * 1000000 + t[2]
-- A call that was made before is answered and not made again; one that was given up is never made.
local seq, mode = tonumber(ARGV[1]), ARGV[8]
local last = mode ~= 'write' and call('GET', KEYS[2])
if last then
 local before = unpackd('<d', last)
 if before == seq then return sub(last, 9) end
 if before > seq then return cmsgpack.pack({'late', clock}) end
end
if mode == 'void' then return answer(KEYS[2], seq, {'void', clock}) end
K = KEYS[1]
local v = call('HGET', K, 'v')
if not v then return cmsgpack.pack(mode == 'write' and {clock} or {'none', clock}) end
-- version of the configuration, sequence, epoch, when the last call was, how long the keys live
local version, sequence, epoch, before, ttl = unpackd('<ddddd', v)
if mode ~= 'write' then
if version ~= tonumber(ARGV[2]) or epoch ~= tonumber(ARGV[3]) then return cmsgpack.pack({'other', clock, version, sequence, epoch}) end
if sequence < tonumber(ARGV[4]) then return cmsgpack.pack({'behind', clock, version, sequence, epoch}) end
-- The caller says how late it can be at most: a clock that has been put forward would give back too early.
local latest = tonumber(ARGV[9])
if latest > 0 and clock > latest then return cmsgpack.pack({'jump', clock, version, sequence, epoch}) end
end
local J = KEYS[3]
local lost = open(v, J)
if lost > 0 then -- somebody has taken a part of the journal away: what it had is not known any more
 call('HSET', K, 'v', packd('<ddddd', version, sequence - lost, epoch, before, ttl), 'calls', known.calls)
 return cmsgpack.pack(mode == 'write' and {clock} or {'behind', clock, version, sequence - lost, epoch})
end
if #T[2] > 0 then T[2] = {} end
local out = {'ok', clock, version, sequence + 1, epoch, 0, 0, {}}
local items = cmsgpack.unpack(ARGV[5])
carry(clock, items, out)
sequence = sequence + 1
local mine = out[8]
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
out[2], out[6], out[7] = once[1], once[2], counts[3]
if clock - known.expires > ttl / 8 then
 known.expires = clock
 call('PEXPIRE', K, format('%.0f', ttl / 1000))
end
v = packd('<ddddd', version, sequence, epoch, clock, ttl)
known.calls, known.items = known.calls + 1, known.items + #items
if mode == 'write' or passing or known.calls >= mostCalls or known.items >= mostItems or clock - known.since > longest then
 finish()
 if known.calls > 1 then call('DEL', J) end
 known.calls, known.items, known.since = 0, 0, clock
else
 if known.calls == 1 then known.since = clock end
 call('RPUSH', J, packd('<d', clock) .. ARGV[5])
 if known.calls == 1 then call('PEXPIRE', J, format('%.0f', ttl / 500)) end
end
call('HSET', K, 'v', v, 'calls', known.calls)
close(v)
if mode ~= 'write' then return answer(KEYS[2], seq, out) end
local all = call('HGETALL', K)
table.insert(all, 1, once[1])
return cmsgpack.pack(all)
end
