-- The runtime of the translated pool: records in a hash, loaded on first use and written back when they have changed, with
-- as few commands as possible.
--
-- Fields of the hash: v and q (version, sequence and epoch, see open.lua), f (the format), s (the spec), N1, A1, ... (the
-- records of each slab, see layout.go), cfg, once, counts, past, sum and tree (records that a pool has one of), hN, hA, ...
-- (heads of the slabs), ia..., ib..., ... (indexes), n... and m... (names), l (lots), d1, ... (tallies), j1, ... (the
-- journal) and r:0, ... (replies).
local K, call
-- Libraries do not exist yet when a function is loaded, so main calls bind first.
local unpackd, packd, floor, ceil, fmod, max, min, band, bor, bnot, sub, rep, format
local function bind()
 call = redis.call
 if floor then return end
 unpackd, packd = struct.unpack, struct.pack
 floor, ceil, fmod, max, min = math.floor, math.ceil, math.fmod, math.max, math.min
 band, bor, bnot = bit.band, bit.bor, bit.bnot
 sub, rep, format = string.sub, string.rep, string.format
end
local F, T = {}, {{}, {}, {}, {}, {}, {}, {}, {}, {}}

-- Integers. quo rounds towards zero, as Go does.
local function quo(a, b) return (a - fmod(a, b)) / b end
local exact = false -- true in tests: products that a double does not hold exactly are an error
local function mul(a, b)
 local x = a * b
 if exact and (x > 9007199254740992 or x < -9007199254740992) then error(format('sluice: a product is too large: %.0f * %.0f', a, b)) end
 return x
end
local function u64(x) if x < 0 then return x + 18446744073709551616 end return x end
local function compare(a, b) if a < b then return -1 elseif a > b then return 1 end return 0 end
local function firstOf(a, b, c) if a ~= 0 then return a elseif b ~= 0 then return b end return c or 0 end
local function bitlen(x) local n = 0 while x >= 1 do x = x / 2 n = n + 1 end return n end
local function reverse16(x)
 local r = 0
 for _ = 1, 16 do r = r * 2 + x % 2 x = (x - x % 2) / 2 end
 return r
end

-- Structs and pointers: slot k of a struct at offset o in t is t[o+k].
local function far(k, t, o) return t[o + k] end
local function zeros(n) local r = {} for i = 1, n do r[i] = 0 end return r end
local function copy_(t, o, n) local r = {} for i = 1, n do r[i] = t[o + i] end return r end
local function move(t, o, s, so, n) for i = 1, n do t[o + i] = s[so + i] end end
local function clear_(t, o, n) for i = 1, n do t[o + i] = 0 end end
local function same(a, ao, b, bo, n)
 for i = 1, n do if a[ao + i] ~= b[bo + i] then return false end end
 return true
end

-- Lists.
local function sort(l) table.sort(l) end
local function sortPart(t, o, n)
 local l = copy_(t, o, n)
 table.sort(l)
 move(t, o, l, 0, n)
end
local function sortBy(l, f)
 if #l > 16 then table.sort(l, function(a, b) return f(a, b) < 0 end) return end
 for i = 2, #l do
  local x, j = l[i], i - 1
  while j > 0 and f(l[j], x) > 0 do l[j + 1] = l[j] j = j - 1 end
  l[j + 1] = x
 end
end
local function without(l, f)
 local r = {}
 for i = 1, #l do if not f(l[i], 0) then r[#r + 1] = l[i] end end
 return r
end

-- known is the pool in memory. A function stays loaded between calls, and so does known. The hash is the truth: known
-- counts only while the field q is as the last call left it.
local known
local page = 16
local formats = {}
local function formatOf(n)
 local f = formats[n]
 if not f then f = '<' .. rep('d', n) formats[n] = f end
 return f
end

-- nothingChanged clears what known lists for the next write of the hash: records used since the last write, with their
-- slabs and numbers; changed pages of large arrays; freed large arrays; slabs whose heads changed; changed index entries;
-- and other fields.
local function nothingChanged(k)
 k.touched, k.slabOf, k.numberOf, k.ntouched = {}, {}, {}, 0
 k.turned, k.nturned, k.cleared, k.ncleared = {}, 0, {}, 0
 k.moved, k.nmoved, k.entered, k.nentered, k.puts, k.nputs = {}, 0, {}, 0, {}, 0
end

-- damaged ends the call, because a field holds something that Sluice does not write. The pool is dropped from memory.
local function damaged(f) error('sluice: damaged field ' .. string.gsub(f, '[^%w:/._\' -]', '?')) end

-- sound checks that all numbers are whole, as all of Sluice's are. Foreign bytes rarely are.
local top = 18446744073709551616 -- the largest are sets of 64 bits
local function sound(f, r, n)
 for k = 1, n do
  local x = r[k]
  if not x or x % 1 ~= 0 or x > top or x < -top then damaged(f) end
 end
 return r
end

local function turn(a, p) -- loads page p of a large array
 local v = not a.fresh and call('HGET', K, a.f .. p)
 if v and #v ~= 8 * page then damaged(a.f .. p) end
 local l = v and sound(a.f .. p, {unpackd(formatOf(page), v)}, page) or zeros(page)
 l.v, l.f = v, a.f .. p
 a.g[p] = l
 known.count = known.count + 1
 return l
end
local large = {
 __index = function(a, k)
  local p = floor((k - 1) / page)
  return (a.g[p] or turn(a, p))[k - p * page]
 end,
 __newindex = function(a, k, x)
  local p = floor((k - 1) / page)
  local l = a.g[p] or turn(a, p)
  l[k - p * page] = x
  if not l.dirty then
   l.dirty = true
   known.nturned = known.nturned + 1
   known.turned[known.nturned] = l
  end
 end,
}
local function array(f) return setmetatable({f = f, g = {}, fresh = false, n = 0}, large) end

-- A record in the hash is the link to the next free record, and as many slots as this pool uses. An older record may have
-- fewer slots.
local function made(link, ...)
 local r = {...}
 r.link = link
 return r
end

-- ld returns a record on its first use since the hash was last written, and lists it as touched.
local headOf
local function ld(s, i)
 local r = s.all[i]
 if not r and s.old[i] then
  r = s.old[i]
  s.all[i], s.old[i] = r, nil
  known.count = known.count + 1
 end
 if not r then
  local f, have = s.k .. i, 0
  local v = call('HGET', K, f)
  if v then
   have = #v / 8 - 1
   if have % 1 ~= 0 or have < 0 then damaged(f) end
   r = sound(f, made(unpackd(formatOf(have + 1), v)), have)
   if r.link % 1 ~= 0 then damaged(f) end
  else
   -- Every meter in use was written. A missing one is damage: its charges would be forgotten.
   if i == '' then
    if s.k ~= 'tree' then damaged(f .. ': missing') end
   elseif s.kept and i < (s.stored or headOf(s) and s.stored) then damaged(f .. ': missing') end
   r = {link = 0}
  end
  for k = have + 1, s.slots do r[k] = 0 end
  r[max(have, s.slots) + 1] = nil
  r.was = v
  for k = 1, #s.large do r[s.large[k]] = array(f .. '/' .. s.large[k] .. '.') end
  s.all[i] = r
  known.count = known.count + 1
 end
 s[i] = r
 if not s.constant then
  local k = known
  local n = k.ntouched + 1
  k.ntouched = n
  k.touched[n], k.slabOf[n], k.numberOf[n] = r, s, i
 end
 return r
end

local S_names, S_tickets

-- Slabs. The head of a slab, with its length and free list, is a field of its own, loaded on first use.
local function slabOf(key, n, big, constant)
 return {k = key, n = n, slots = n, large = big, constant = constant, all = {}, old = {}}
end
-- age drops the records that were not used since its last call. Call it only right after the hash was written.
local function age(k)
 for _, s in pairs(k.slabs) do s.all, s.old = {}, s.all end
 k.entries, k.numbers, k.texts, k.ids, k.count = {}, {}, {}, {}, 0
end
headOf = function(s)
 local v = call('HGET', K, 'h' .. s.k)
 s.used, s.free, s.idle = 0, 0, 0
 if v then
  if #v ~= 24 then damaged('h' .. s.k) end
  s.used, s.free, s.idle = unpack(sound('h' .. s.k, {unpackd('<ddd', v)}, 3), 1, 3)
 end
 s.stored = s.used
 return s.used
end
local function move_(s)
 if not s.used then headOf(s) end
 if not s.moved then
  s.moved = true
  known.nmoved = known.nmoved + 1
  known.moved[known.nmoved] = s
 end
end
local function slabNew(s)
 move_(s)
 local i = s.free
 if i ~= 0 then
  local r = s[i] or ld(s, i)
  s.free, r.link = r.link, 0
  s.idle = s.idle - 1
  return i
 end
 i = s.used
 if i == 0 then i = 1 end
 s.used = i + 1
 return i
end
local function slabRecycle(s, i)
 move_(s)
 local r = s[i] or ld(s, i)
 r.link = s.free
 s.free, s.idle = i, s.idle + 1
end
local function slabFree(s, i)
 local r = s[i] or ld(s, i)
 clear_(r, 0, s.slots)
 for k = 1, #s.large do
  local a = r[s.large[k]]
  -- All its pages are deleted; later writes begin with zeros.
  for _, l in pairs(a.g) do l.gone = true end
  a.g, a.fresh = {}, true
  known.ncleared = known.ncleared + 1
  known.cleared[known.ncleared] = a.f
 end
 slabRecycle(s, i)
end
local function slabLen(s)
 if (s.used or headOf(s)) == 0 then return 0 end
 return s.used - 1 - s.idle
end
local function slabEnd(s) return s.used or headOf(s) end

-- Indexes: a field for every key, with the numbers of its records.
local function entry(f)
 local l = known.entries[f]
 if l then return l end
 l = {f = f}
 local v = call('HGET', K, f)
 if v then
  if not string.find(v, '^%d[%d,]*$') then damaged(f) end
  for n in string.gmatch(v, '%d+') do l[#l + 1] = tonumber(n) end
 end
 known.entries[f] = l
 known.count = known.count + 1
 return l
end
local function indexSeek(x, h, p)
 local i = entry(x .. h)[p + 1]
 if i then return i, p + 1 end
 return 0, 0
end
local function enter(l)
 if not l.dirty then
  l.dirty = true
  known.nentered = known.nentered + 1
  known.entered[known.nentered] = l
 end
end
local function indexAdd(x, h, i)
 local l = entry(x .. h)
 l[#l + 1] = i
 enter(l)
end
local function indexRemove(x, h, i)
 local l = entry(x .. h)
 for k = 1, #l do
  if l[k] == i then table.remove(l, k) enter(l) return end
 end
end

-- Tickets by id. Most are closed before the hash is written, so this index is written only with the hash.
local ticketIx = 'ia'
F.pool_Pool_find = function(t, o)
 local session, N = t[o + 1], t[o + 2]
 local m = known.ids[session]
 local i = m and m[N]
 if not i then
  local f = ticketIx .. packd('<dd', session, N)
  local v = call('HGET', K, f)
  if not v then return 0 end
  i = tonumber(v)
  if not i or i % 1 ~= 0 then damaged(f) end
  if known.struck[f] then return 0 end
  if not m then m = {} known.ids[session] = m end
  m[N] = i
 end
 return i, S_tickets[i] or ld(S_tickets, i)
end
F.pool_Pool_enter = function(i, t, o)
 local m = known.ids[t[o + 1]]
 if not m then m = {} known.ids[t[o + 1]] = m end
 m[t[o + 2]] = i
 known.fresh[i] = packd('<dd', t[o + 1], t[o + 2])
end
F.pool_Pool_strikeOut = function(i, t, o)
 local m = known.ids[t[o + 1]]
 if m then m[t[o + 2]] = nil end
 if known.fresh[i] then known.fresh[i] = nil
 else known.struck[ticketIx .. packd('<dd', t[o + 1], t[o + 2])] = true end
end
F.pool_sessionHash = function(id) return packd('<d', id) end
F.pool_scopeHash = function(limit, t, o) return packd('<BI4I4I4I4I4', limit, t[o + 1], t[o + 2], t[o + 3], t[o + 4], t[o + 5]) end
F.order_LaneKey_hash = function(t) return packd('<I4I4I4', t[1], t[2], t[3]) end
F.order_Position_hash = function(t) return packd('<I4I4I4I4I4I4I4I4', t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8]) end
F.order_memberHash = function(lane, class, agent) return packd('<I4BI4', lane, class, agent) end
F.order_onHash = function(on) return packd('<I4', on) end

-- Names: a number for every text, as long as a record refers to it.
local function nameOf(i) return S_names[i] or ld(S_names, i) end
local function put(f, v)
 local n = known.nputs + 1
 known.nputs = n
 known.puts[n], known.puts[-n] = f, v
end
F.flat_Names_Hold = function(s)
 if s == '' then return 0 end
 local i = known.numbers[s] or F.flat_Names_Find(s)
 if i == 0 then
  i = slabNew(S_names)
  put('n' .. s, i)
  put('m' .. i, s)
  known.numbers[s], known.texts[i] = i, s
 end
 local r = nameOf(i)
 r[1] = r[1] + 1
 return i
end
F.flat_Names_Find = function(s)
 if s == '' then return 0 end
 local i = known.numbers[s]
 if not i then
  i = tonumber(call('HGET', K, 'n' .. s) or 0)
  if not i or i % 1 ~= 0 then damaged('n' .. s) end
  known.numbers[s], known.count = i, known.count + 1
 end
 return i
end
F.flat_Names_Keep = function(i)
 if i ~= 0 then
  local r = S_names[i] or ld(S_names, i)
  r[1] = r[1] + 1
 end
 return i
end
F.flat_Names_Text = function(i)
 if i == 0 then return '' end
 local s = known.texts[i]
 if not s then s = call('HGET', K, 'm' .. i) or '' known.texts[i] = s end
 return s
end
F.flat_Names_Drop = function(i)
 if i == 0 then return end
 local r = S_names[i] or ld(S_names, i)
 local refs = r[1] - 1
 r[1] = refs
 if refs > 0 then return end
 local s = F.flat_Names_Text(i)
 put('n' .. s, false)
 put('m' .. i, false)
 known.numbers[s], known.texts[i] = 0, nil
 slabFree(S_names, i)
end
F.flat_Names_Sole = function(i) return nameOf(i)[1] == 1 end
F.flat_Names_Tags = function(i) return S_names[i] or ld(S_names, i), 1 end
