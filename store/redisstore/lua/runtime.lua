-- What the translated pool stands on: records in a hash, loaded when they are asked for and written
-- back when they have changed, in as few commands as can be.
local K = KEYS[1]
local call = redis.call
local unpackd, packd = struct.unpack, struct.pack
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local band, bor, bnot = bit.band, bit.bor, bit.bnot
local sub, rep, format = string.sub, string.rep, string.format
local F, T = {}, {{}, {}, {}, {}, {}}

-- Integers: what Go rounds towards zero.
local function quo(a, b)
 local m = a % b
 if m ~= 0 and a < 0 then return (a - m) / b + 1 end
 return (a - m) / b
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

-- Structs and pointers: slot k of what begins at o in t is t[o+k].
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

-- Records. Small ones are one field of the hash, large ones a field for every page that is looked at.
local page, small = 16, 40
local formats = {}
local function formatOf(n)
 local f = formats[n]
 if not f then f = '<' .. rep('d', n) formats[n] = f end
 return f
end
local raw = {} -- fields that were fetched ahead
local function get(f)
 local v = raw[f]
 if v == nil then return call('HGET', K, f) end
 return v
end
local loaded, fields, values, sizes, froms, nloaded = {}, {}, {}, {}, {}, 0
local function note(r, f, v, from, n)
 nloaded = nloaded + 1
 loaded[nloaded], fields[nloaded], values[nloaded], froms[nloaded], sizes[nloaded] = r, f, v, from, n
end
local function turn(t, k) -- loads the page that slot k is on
 local p = floor((k - 1) / page)
 local n = t.n - p * page
 if n > page then n = page end
 local f = t.f .. p
 local v = not t.fresh and get(f)
 if v then
  local l = {unpackd(formatOf(n), v)}
  for i = 1, n do rawset(t, p * page + i, l[i]) end
 else
  for i = 1, n do rawset(t, p * page + i, 0) end
 end
 if not t.constant then note(t, f, v, p * page, n) end
end
local pages = {
 __index = function(t, k)
  turn(t, k)
  return rawget(t, k)
 end,
 __newindex = function(t, k, v)
  turn(t, k)
  rawset(t, k, v)
 end,
}
local function record(f, n, constant)
 if n > small then return setmetatable({f = f .. '.', n = n, fresh = false, constant = constant or false}, pages) end
 local v = get(f)
 local r = v and {unpackd(formatOf(n), v)} or zeros(n)
 if not constant then note(r, f, v, 0, n) end
 return r
end

-- Slabs. A free record has the number of the next behind its last slot.
local heads
local function ld(s, i)
 local r = record(s.k .. i, s.n + 1, s.c)
 s[i] = r
 return r
end
local function slabNew(s)
 local h = s.h
 local i = heads[h + 2]
 if i ~= 0 then
  local r = s[i] or ld(s, i)
  heads[h + 2], r[s.n + 1] = r[s.n + 1], 0
  heads[h + 3] = heads[h + 3] - 1
  return i
 end
 i = heads[h + 1]
 if i == 0 then i = 1 end
 heads[h + 1] = i + 1
 return i
end
local function slabRecycle(s, i)
 local h = s.h
 local r = s[i] or ld(s, i)
 r[s.n + 1] = heads[h + 2]
 heads[h + 2], heads[h + 3] = i, heads[h + 3] + 1
end
local dropped = {}
local function slabFree(s, i)
 if s.n + 1 > small then
  -- All its pages go; what is written to it from now on begins with nothing.
  dropped[#dropped + 1] = s[i] or ld(s, i)
  local r = dropped[#dropped]
  for k = 1, s.n + 1 do if rawget(r, k) then rawset(r, k, 0) end end
  r.fresh = true
 else
  clear_(s[i] or ld(s, i), 0, s.n)
 end
 slabRecycle(s, i)
end
local function slabLen(s)
 if heads[s.h + 1] == 0 then return 0 end
 return heads[s.h + 1] - 1 - heads[s.h + 3]
end
local function slabEnd(s) return heads[s.h + 1] end

-- Indexes: a field for every key, with the numbers of the records that have it.
local entries, entered = {}, {}
local function entry(f)
 local l = entries[f]
 if l then return l end
 l = {}
 local v = get(f)
 if v then
  for n in string.gmatch(v, '%d+') do l[#l + 1] = tonumber(n) end
 end
 entries[f] = l
 return l
end
local function indexSeek(x, h, p)
 local i = entry(x .. h)[p + 1]
 if i then return i, p + 1 end
 return 0, 0
end
local function indexAdd(x, h, i)
 local f = x .. h
 local l = entry(f)
 l[#l + 1] = i
 entered[f] = l
end
local function indexRemove(x, h, i)
 local f = x .. h
 local l = entry(f)
 for k = 1, #l do
  if l[k] == i then table.remove(l, k) entered[f] = l return end
 end
end
F.pool_idHash = function(t, o) return packd('<dd', t[o + 1], t[o + 2]) end
F.pool_sessionHash = function(id) return packd('<d', id) end
F.pool_scopeHash = function(limit, t, o) return packd('<BI4I4I4I4I4', limit, t[o + 1], t[o + 2], t[o + 3], t[o + 4], t[o + 5]) end
F.order_LaneKey_hash = function(t) return packd('<I4I4I4', t[1], t[2], t[3]) end
F.order_Place_hash = function(t) return packd('<I4I4I4I4I4I4I4I4', t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8]) end
F.order_memberHash = function(lane, class, agent) return packd('<I4BI4', lane, class, agent) end
F.order_onHash = function(on) return packd('<I4', on) end

-- Names: a number for every text, while somebody holds it.
local S_names = {k = 'N', n = 3, h = 0}
local numbers, texts, puts = {}, {}, {}
local function nameOf(i) return S_names[i] or ld(S_names, i) end
F.flat_Names_Hold = function(s)
 if s == '' then return 0 end
 local i = numbers[s]
 if not i then
  i = tonumber(get('n' .. s) or 0)
  if i == 0 then
   i = slabNew(S_names)
   puts['n' .. s], puts['m' .. i] = i, s
   texts[i] = s
  end
  numbers[s] = i
 end
 local r = nameOf(i)
 r[1] = r[1] + 1
 return i
end
F.flat_Names_Keep = function(i)
 if i ~= 0 then
  local r = nameOf(i)
  r[1] = r[1] + 1
 end
 return i
end
F.flat_Names_Text = function(i)
 if i == 0 then return '' end
 local s = texts[i]
 if not s then s = get('m' .. i) or '' texts[i] = s end
 return s
end
F.flat_Names_Drop = function(i)
 if i == 0 then return end
 local r = nameOf(i)
 r[1] = r[1] - 1
 if r[1] > 0 then return end
 local s = F.flat_Names_Text(i)
 puts['n' .. s], puts['m' .. i] = false, false
 numbers[s], texts[i] = nil, nil
 raw['n' .. s], raw['m' .. i] = false, false
 slabFree(S_names, i)
end
F.flat_Names_Sole = function(i) return nameOf(i)[1] == 1 end
F.flat_Names_Tags = function(i) return nameOf(i), 1 end
local verdicts = {[0] = 'none', 'ok', 'throttled', 'overloaded', 'quota gone', 'billing stop', 'error'}
F.store_Verdict_String = function(v) return verdicts[v] or 'invalid' end
