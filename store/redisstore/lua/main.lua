
-- results appends the results of operations to out, which has n entries.
local function results(out, n, ops)
 for k = 1, #ops do
  local op = ops[k]
  for i = 1, resultSlots do out[n + i] = op[resultAt + i] end
  n = n + resultSlots
 end
end

-- Lots. known.lotIx finds the lot of a ticket by session and number.
F.pool_Pool_callerNamed = function(s)
 local i, caller = known.numbers[s] or F.flat_Names_Find(s), 0
 if i ~= 0 then caller = (S_names[i] or S_names.all[i] or ld(S_names, i))[2] end -- only read, so not marked as touched
 if caller == 0 then caller = F.pool_Pool_crowdCaller() end
 local all = T[tallies]
 if not all[caller + 1] then all[caller + 1] = newTally(caller) end
 return caller
end
F.pool_Pool_mark = function(t)
 t[tallyMarked] = 1
 known.nchanged = known.nchanged + 1
 known.changed[known.nchanged] = t
end
F.pool_Pool_addLot = function(l)
 local lots, session, first = known.lots, l[lotSession], l[lotSession + 1]
 lots[#lots + 1] = l
 known.lotAt[l] = #lots
 local m = known.lotIx[session]
 if not m then m = {} known.lotIx[session] = m end
 for n = first, first + #l[lotAgents] - 1 do m[n] = l end
end
F.pool_Pool_lotAt = function(i) return known.lots[i + 1] end
F.pool_Pool_dropLot = function(l)
 local lots, at = known.lots, known.lotAt
 local i, last, m, first = at[l], #lots, known.lotIx[l[lotSession]], l[lotSession + 1]
 lots[i], at[lots[last]] = lots[last], i
 lots[last], at[l] = nil, nil
 local states = l[lotStates]
 for k = 1, #states do if states[k] ~= lotEnded then m[first + k - 1] = nil end end
end
F.pool_Pool_runOf = function(e, at)
 local m, numbers = known.lotIx[e[endSession]], e[endNumbers]
 local n = numbers[at + 1]
 local l, to = m and m[n], at + 1
 if l then
  local following = numbers[to + 1]
  while following and following > n and m[following] == l do
   n, to = following, to + 1
   following = numbers[to + 1]
  end
 end
 return l, to
end
F.pool_Pool_strikeLot = function(l, e, from, to)
 local m, numbers, states, first = known.lotIx[l[lotSession]], e[endNumbers], l[lotStates], l[lotSession + 1] - 1
 for i = from + 1, to do
  local n = numbers[i]
  m[n], states[n - first] = nil, lotEnded
 end
end

-- readLots reads the lots of a pool from the field l.
local function readLots()
 local v = call('HGET', K, 'l')
 if not v then return end
 known.keptLots = true
 local ok, lots = pcall(cmsgpack.unpack, v)
 if not ok or type(lots) ~= 'table' then damaged('l') end
 for i = 1, #lots do
  local l = lots[i]
  if type(l) ~= 'table' or #l ~= lotSlots or type(l[lotSession + 1]) ~= 'number' then damaged('l') end
  local callers, agents, states = l[lotCallers], l[lotAgents], l[lotStates]
  if type(callers) ~= 'table' or type(agents) ~= 'table' or type(states) ~= 'table' or #callers ~= #agents or #states ~= #agents then damaged('l') end
  for k = 1, #callers do
   local caller = callers[k]
   if not T[tallies][caller + 1] then T[tallies][caller + 1] = newTally(caller) end
  end
  F.pool_Pool_addLot(l)
  local m, first = known.lotIx[l[lotSession]], l[lotSession + 1]
  for k = 1, #states do if states[k] == lotEnded then m[first + k - 1] = nil end end
 end
end

-- readTallies reads the tallies of a pool from the fields d1, d2, ...
local function readTallies()
 local all, listed = T[tallies], {}
 while true do
  local f = 'd' .. known.logs + 1
  local v = call('HGET', K, f)
  if not v then break end
  known.logs = known.logs + 1
  local ok, log = pcall(cmsgpack.unpack, v)
  if not ok or type(log) ~= 'table' then damaged(f) end
  for i = 1, #log do
   local t = log[i]
   if type(t) ~= 'table' or #t ~= tallySlots then damaged(f) end
   sound(f, t, tallySlots)
   t[tallyMarked], t[tallyListed] = 0, 0
   all[t[1] + 1] = t
   listed[#listed + 1] = t[1]
  end
 end
 for i = 1, #listed do
  local t = all[listed[i] + 1]
  if t[tallyDirty] ~= 0 then F.pool_Pool_enlist(t) end
 end
end

-- writeTallies writes all changed tallies to one new field. When there are mostLogs fields, it replaces them all by one
-- with the tallies that are not empty.
local mostLogs = 64
local function writeTallies(set, ns, del, nd)
 local list, n = known.changed, known.nchanged
 if n == 0 then return ns, nd end
 for i = 1, n do list[i][tallyMarked] = 0 end
 known.changed, known.nchanged = {}, 0
 local left = #T[told] > 0 or #T[before] > 0
 if known.logs >= mostLogs or not left then
  list = {}
  for _, all in pairs({T[told], T[before]}) do
   for i = 1, #all do
    if all[i][tallyDirty] ~= 0 and all[i][tallyListed] ~= 0 then list[#list + 1] = all[i] end
   end
  end
  for i = 1, known.logs do nd = nd + 1 del[nd] = 'd' .. i end
  known.logs = 0
  if #list == 0 then return ns, nd end
 end
 known.logs = known.logs + 1
 set[ns + 1], set[ns + 2] = 'd' .. known.logs, cmsgpack.pack(list)
 return ns + 2, nd
end

-- writeLots returns the field with the lots and its value, false to delete it. Beyond mostInLots tickets, lots become
-- single tickets.
local mostInLots = 2048
local function writeLots()
 local n = 0
 for i = 1, #known.lots do n = n + #known.lots[i][lotAgents] end
 if n > mostInLots then F.pool_Pool_SpellOut() end
 if #known.lots > 0 then
  known.keptLots = true
  return 'l', cmsgpack.pack(known.lots)
 elseif known.keptLots then
  known.keptLots = false
  return 'l', false
 end
end

-- carry carries out the items of a batch. An item is an operation, or, with a kind below zero, a lot or ends for the fast
-- path. To out it appends: how many items the fast path did and how many parts of the next one, the number of the first
-- ticket of each lot that it granted, and the results of all other operations.
local function carry(clock, items, out)
 local n, done, part = #items, 0, 0
 if n == 0 then
  F.pool_Pool_Apply(clock, {})
  return
 end
 local at = out and #out + 1
 local said = out and at + 1
 local fast = true -- not with other operations, which may begin a pause that concerns the whole batch
 for k = 1, n do
  if items[k][1] >= 0 and items[k][1] ~= touchKind then fast = false break end
 end
 if not fast then F.pool_Pool_begin(clock, true)
 elseif F.pool_Pool_BeginFast(clock) then
  for k = 1, n do
   local item = items[k]
   if item[1] >= 0 then break
   elseif item[1] == lotKind then
    local number = F.pool_Pool_FastLot(item)
    if number == 0 then break end
    if out then said = said + 1 out[said] = number end
   else
    part = F.pool_Pool_FastEnds(item)
    if part < #item[endNumbers] then break end
    part = 0
   end
   done = k
  end
  F.pool_Pool_EndFast()
 end
 if out then out[at], out[at + 1] = done, part end
 if done == n then return end
 local ops, m = {}, 0
 for k = done + 1, n do
  local item = items[k]
  if item[1] >= 0 then m = m + 1 ops[m] = item
  elseif item[1] == lotKind then
   for i = 1, #item[lotAgents] do m = m + 1 ops[m] = spelt(item, i) end
  else
   for i = part + 1, #item[endNumbers] do
    if item[endAnswer] ~= 0 then m = m + 1 ops[m] = speltAnswer(item, i) end
    if item[endClose] ~= 0 then m = m + 1 ops[m] = speltClose(item, i) end
   end
   part = 0
  end
 end
 F.pool_Pool_carryOut(ops)
 if out then results(out, said, ops) end
end

-- The records are written to the hash when there is much to write, or when a process reads them all. Until then calls go
-- to a journal, the fields j1, j2, ...: each has a batch with its time, which leads to the same state when it is carried
-- out again, and the reply. The field q has the number and time of the last call. It tells whether what this server
-- keeps in memory (known) is still current.
local mostCalls, mostItems, longest = 128, 4096, 200000
local mostKnown = 300000 -- records in memory; beyond that, age drops those that were not used lately

-- The last reply on each pipe is kept in case it gets lost on the way, in this many fields. After longAgo microseconds no
-- caller asks for it any more.
local bins, longAgo = 256, 600000000

-- replyOf returns the last call on a pipe of a process: {its number, its time, the reply}.
local function replyOf(pipe)
 local bin = pipe % bins
 local all = known.replies[bin]
 if not all then
  all = {}
  known.replies[bin] = all
  local v = call('HGET', K, 'r:' .. bin)
  local at = 1
  while v and at <= #v do
   local of, seq, when, size
   if #v < at + 27 then break end -- foreign content; without it, a call whose reply was lost is made and charged twice
   of, seq, when, size, at = unpackd('<dddI4', v, at)
   if of % 1 ~= 0 or seq % 1 ~= 0 or when % 1 ~= 0 or at + size - 1 > #v then break end
   all[of] = {seq, when, sub(v, at, at + size - 1)}
   at = at + size
  end
 end
 local r = all[pipe]
 if not r then
  r = {0, 0, ''}
  all[pipe] = r
 end
 return r
end

-- keepReply records a reply in r, the last call on the pipe.
local function keepReply(r, pipe, seq, clock, reply)
 r[1], r[2], r[3] = seq, clock, reply
 local bin = pipe % bins
 if not known.told[bin] then
  known.told[bin] = true
  known.ntold = known.ntold + 1
 end
end

local function writeReplies(set, ns, clock)
 for bin in pairs(known.told) do
  local out, n, all = {}, 0, known.replies[bin]
  for pipe, r in pairs(all) do
   if r[2] < clock - longAgo then all[pipe] = nil
   else
    n = n + 1
    out[n] = packd('<dddI4', pipe, r[1], r[2], #r[3]) .. r[3]
   end
  end
  set[ns + 1], set[ns + 2] = 'r:' .. bin, table.concat(out)
  ns = ns + 2
 end
 known.told, known.ntold = {}, 0
 return ns
end

-- finish writes all changes to the hash and clears the journal.
local function finish(clock)
 local w = known
 local set, del, ns, nd = {}, {}, 0, 0
 local f, v = writeLots()
 if v then set[1], set[2], ns = f, v, 2 elseif f then del[1], nd = f, 1 end
 ns, nd = writeTallies(set, ns, del, nd)
 for i = 1, w.ntouched do
  local s, k, r = w.slabOf[i], w.numberOf[i], w.touched[i]
  local v = packd(formatOf(s.n + 1), r.link, unpack(r, 1, s.n))
  if v ~= r.was then
   set[ns + 1], set[ns + 2] = s.k .. k, v
   ns = ns + 2
   r.was = v
  end
  s[k] = nil
 end
 for i = 1, w.nmoved do
  local s = w.moved[i]
  s.moved = nil
  s.stored = s.used
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
 for i, id in pairs(w.fresh) do
  set[ns + 1], set[ns + 2] = ticketIx .. id, i
  ns = ns + 2
 end
 for f in pairs(w.struck) do nd = nd + 1 del[nd] = f end
 w.fresh, w.struck = {}, {}
 for session, m in pairs(w.ids) do if not next(m) then w.ids[session] = nil end end
 for session, m in pairs(w.lotIx) do if not next(m) then w.lotIx[session] = nil end end
 ns = writeReplies(set, ns, clock)
 w.q = packd('<dd', w.sequence, clock)
 set[ns + 1], set[ns + 2] = 'v', packd('<ddddd', w.version, w.sequence, w.epoch, clock, w.ttl)
 set[ns + 3], set[ns + 4] = 'q', w.q
 ns = ns + 4
 for i = 1, w.calls do del[nd + i] = 'j' .. i end
 nd = nd + w.calls
 if gone then
  for f in pairs(gone) do nd = nd + 1 del[nd] = f end
 end
 for i = 1, nd, 2000 do call('HDEL', K, unpack(del, i, min(i + 1999, nd))) end
 for i = 1, ns, 2000 do call('HSET', K, unpack(set, i, min(i + 1999, ns))) end
 w.calls, w.items, w.since = 0, 0, clock
 nothingChanged(w)
 if w.count > mostKnown then age(w) end
 again()
end


local pools, npools, current = {}, 0, nil

-- open loads the pool, from memory if it is current there. It returns false if there is no pool, and otherwise how many
-- calls are missing in the journal.
local function open()
 local k = pools[K]
 pools[K] = nil -- an error below leaves it unknown
 local q = call('HGET', K, 'q')
 if k and k.q == q then
  if current ~= k then
   current = k
   takeUp(k)
  end
  return 0
 end
 local v = q and call('HGET', K, 'v')
 if not v then return false end
 if #v ~= 40 then damaged('v') end
 if #q ~= 16 then damaged('q') end
 sound('v', {unpackd('<ddddd', v)}, 5)
 sound('q', {unpackd('<dd', q)}, 2)
 begin()
 current, known.q = known, q
 -- version of the limits, sequence, epoch, time of the last write, time to live of the key
 known.version, known.sequence, known.epoch, known.since, known.ttl = unpackd('<ddddd', v)
 again()
 readTallies()
 readLots()
 local made = unpackd('<d', q)
 while known.sequence < made do
  local entry = call('HGET', K, 'j' .. known.calls + 1)
  if not entry then return made - known.sequence end
  local field = 'j' .. known.calls + 1
  if #entry < 28 then damaged(field) end
  local clock, pipe, seq, size, at = unpackd('<dddI4', entry)
  sound(field, {clock, pipe, seq}, 3)
  if at + size - 1 > #entry then damaged(field) end
  local batch = sub(entry, at + size)
  if batch ~= '' then
   T[2] = {}
   local items = cmsgpack.unpack(batch)
   carry(clock, items)
   known.items = known.items + #items
  end
  keepReply(replyOf(pipe), pipe, seq, clock, sub(entry, at, at + size - 1))
  known.calls, known.sequence = known.calls + 1, known.sequence + 1
 end
 return 0
end

-- close ends a call that has changed the pool: it writes the journal or the hash, and keeps the pool in memory. last is the
-- call before it on the pipe.
local function close(last, clock, pipe, seq, reply, batch, write)
 local w = known
 keepReply(last, pipe, seq, clock, reply)
 local sequence, calls = w.sequence + 1, w.calls + 1
 local q = packd('<dd', sequence, clock)
 w.sequence, w.q = sequence, q
 if clock - w.expires > w.ttl / 8 then
  w.expires = clock
  call('PEXPIRE', K, format('%.0f', w.ttl / 1000))
 end
 if write or calls >= mostCalls or w.items >= mostItems or calls > 1 and clock - w.since > longest then
  finish(clock)
 else
  w.calls = calls
  if calls == 1 then w.since = clock end
  call('HSET', K, 'j' .. calls, packd('<dddI4', clock, pipe, seq, #reply) .. reply .. batch, 'q', q)
 end
 if not w.counted then
  w.counted, npools = true, npools + 1
  if npools > 1000 then pools, npools = {}, 1 end
 end
 pools[K] = w
end

-- publish tells other processes which of their tickets were decided. It adds those of the calling process to mine.
local function publish(decided, mine, me, channel)
 local others = {}
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
 for process, l in pairs(others) do call('PUBLISH', format('%s%.0f', channel, process), cmsgpack.pack(l)) end
end

-- whole writes all of the pool to the hash and returns it.
local function whole(clock)
 if #T[2] > 0 then T[2] = {} end
 F.pool_Pool_SpellOut()
 finish(clock)
 pools[K] = known
 local all = call('HGETALL', K)
 table.insert(all, 1, max(clock, once[1]))
 return cmsgpack.pack(all)
end

-- main carries out a call. passing means that nothing stays in memory between calls.
local function main(KEYS, ARGV, passing)
bind()
local t = call('TIME') local clock = t[1] * 1000000 + t[2]
local seq, version, epoch, seen, me, latest, pipe, of, had = unpackd('<ddddddddd', ARGV[1])
local mode = ARGV[3]
K = KEYS[1]
local missing = open()
if not missing then
 if mode == 'write' then return cmsgpack.pack({clock}) end
 return cmsgpack.pack({mode == 'void' and 'void' or 'none', clock})
end
if missing ~= 0 then -- part of the journal was removed, and its calls are lost
 call('HSET', K, 'q', packd('<dd', known.sequence, clock))
 if mode == 'write' then return cmsgpack.pack({clock}) end
 return cmsgpack.pack({'behind', clock, known.version, known.sequence, known.epoch})
end
if mode == 'write' then return whole(clock) end
-- A call that was carried out before gets its reply again. One that was given up is never carried out.
local last = replyOf(pipe)
if last[1] >= seq then
 pools[K] = known
 if last[1] == seq then return last[3] end
 return cmsgpack.pack({'late', clock})
end
if mode == 'void' then
 local reply = cmsgpack.pack({'void', clock})
 close(last, clock, pipe, seq, reply, '', passing)
 return reply
end
local what
if version ~= known.version or epoch ~= known.epoch then what = 'other'
elseif known.sequence < seen then what = 'behind'
-- The caller says how late it can be at most. A clock that was put forward would give quota back too early.
elseif latest > 0 and clock > latest then what = 'jump'
-- The caller had a reply to a call that is unknown here. The call was lost, although others may have moved the sequence on.
elseif had > 0 and (of == pipe and last or replyOf(of))[1] < had then what = 'behind' end
if what then
 pools[K] = known
 return cmsgpack.pack({what, clock, known.version, known.sequence, known.epoch})
end
if #T[2] > 0 then T[2] = {} end
local out = {'ok', 0, version, known.sequence + 1, epoch, 0, 0, {}, nil, nil, nil, nil} -- with room for what carry appends
local items = cmsgpack.unpack(ARGV[2])
carry(clock, items, out)
known.items = known.items + #items
if #T[2] > 0 then publish(T[2], out[8], me, ARGV[4]) end
out[2], out[6], out[7] = once[1], once[2], counts[3]
local reply = cmsgpack.pack(out)
close(last, clock, pipe, seq, reply, ARGV[2], passing)
return reply
end
