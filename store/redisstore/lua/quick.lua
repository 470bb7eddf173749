
-- The commonest operations, acquires that can go at once and closes, without ado: where nobody waits, no
-- gate is there, nothing is kept for others and no limit is scoped. They do what acquire and close do, many at
-- a time: what they charge is added up for the whole batch, and tickets that were granted together are one
-- lot until something is asked of one of them that needs a record. Everything else goes the long way.
local quickNow, calm = -1, false
local rooms, taken, bound, ways = {}, {}, {}, {}
local plainKnown, plain

-- plainPool reports whether a pool's limits allow it.
local function plainPool()
 if plainKnown == known then return plain end
 plainKnown = known
 plain = cfg[@cfg.pool.Pool.anyStrict] == 0 and cfg[@cfg.store.Spec.Light + 3] == 0 -- the light binds on stocks only
 for l = 0, cfg[@cfg.store.Spec.Limits.len] - 1 do
  if once[@once.single + l] == 0 then plain = false end
 end
 return plain
end

-- ways of charging
local held, fixed, off, places = 1, 2, 3, 4

local sessionLife = 10000000 -- of package pool

-- spread reports whether lower classes are paced on a limit, or nil if something else may be kept of it.
local function spread(l, class)
 local d = S_defs[l + 1] or ld(S_defs, l + 1)
 if d[@def.Kind] ~= 1 or cfg[@cfg.store.Spec.Pace] == 0 then return nil end
 if class == 0 then return false end
 -- While somebody of the highest class is alive they may have to wait.
 if cfg[@cfg.pool.Pool.lease] > 0 and once[@once.now] < once[@once.aliveTill] then return nil end
 return true
end

-- look brings a limit to now and finds out how much room it has, once for a batch.
local function look(l)
 local u = unscoped[l]
 local m, r = u[2], u[3]
 local d = F.pool_Pool_defOf(m)
 F.meter_Meter_Advance(m, d, r, once[@once.now])
 local kind, guard, late = d[@def.Kind], d[@def.Guard], d[@def.Late]
 local way = held
 if kind == 3 then way = places
 elseif guard == 2 and late == 0 then way = off
 elseif guard == 0 and late == 0 and F.pool_headerTime_slowerThan(once, @once.header - 1, d, r) then way = 0 -- placed ahead: the long way
 elseif kind == 2 and m[@inst.Hi] ~= 0 then way = fixed end
 local room = F.meter_Meter_Room(m, d, r)
 rooms[l], taken[l], bound[l], ways[l] = room, 0, 0, way
 return room
end

-- settleUp charges what the batch has taken and bound so far.
local function settleUp()
 local now = once[@once.now]
 for l in pairs(rooms) do
  local u = unscoped[l]
  local m, r, take, bind, way = u[2], u[3], taken[l], bound[l], ways[l]
  local d = F.pool_Pool_defOf(m)
  if take ~= 0 then
   m[@inst.seen] = floor(now / 1048576)
   if way == off then
    F.meter_Meter_add(m, d, r, now, take)
   else
    m[@inst.Held] = m[@inst.Held] + take
    if way == fixed then m[@inst.Level] = m[@inst.Level] + take end
   end
  end
  if bind ~= 0 then
   m[@inst.Held] = m[@inst.Held] - bind
   if way == fixed then
    if now >= m[@inst.Last] then m[@inst.Rem] = m[@inst.Rem] + bind end
   elseif way ~= places then
    F.meter_Meter_add(m, d, r, now, bind)
   end
  end
  rooms[l] = nil
 end
end


-- A lot: session, first number, name, caller, session's record, class, granted, deadline, ttl, alive, due, period,
-- how many are open, charges, tie, and for each of these limit, amount, mode, meter.
local lotHead = 15

-- record makes a ticket of a lot a record.
local function recordOf(lot, N)
 local i = slabNew(S_tickets)
 local t = S_tickets[i] or ld(S_tickets, i)
 for k = 1, @ticket.charges - 1 do t[k] = 0 end
 t[@ticket.id.Session], t[@ticket.id.N], t[@ticket.since], t[@ticket.granted] = lot[1], N, lot[7], lot[7]
 t[@ticket.who.agent], t[@ticket.caller], t[@ticket.session], t[@ticket.class] = lot[3], lot[4], lot[5], lot[6]
 t[@ticket.deadline], t[@ticket.ttl], t[@ticket.alive], t[@ticket.note] = lot[8], lot[9], lot[10], lot[12]
 t[@ticket.state], t[@ticket.n] = 3, lot[14]
 t[@ticket.ends], t[@ticket.tie] = lot[7] + lot[9], lot[15]
 local at, from = @ticket.charges, lotHead
 for _ = 1, lot[14] do
  t[at], t[at + 1], t[at + 2], t[at + 3], t[at + 4] = lot[from + 2], lot[7], lot[from + 3], lot[from + 4], lot[from + 1]
  at, from = at + 5, from + 4
 end
 local step = lot[11] / 100000
 local slot = step % 4096
 local slots = once.slots
 local after = slots[slot + 1]
 t[@ticket.due], t[@ticket.slot], t[@ticket.next] = lot[11], slot, after
 if after ~= 0 then
  local r = S_tickets[after] or ld(S_tickets, after)
  r[@ticket.prev] = i
 end
 slots[slot + 1] = i
 local count = once[@once.wheel.count] + 1
 once[@once.wheel.count] = count
 if count == 1 or step < once[@once.wheel.next] then once[@once.wheel.next] = step end
 indexAdd(X.ticketIx, F.pool_idHash(t, @ticket.id.Session - 1), i)
 known.lots[lot[1]][N] = nil
 lot[13] = lot[13] - 1
 known.nopen, known.lotted = known.nopen - 1, true
 return i, t
end

-- recordsDue makes records of what may expire by now.
local function recordsDue(now)
 local due = {}
 known.lotDue = 9007199254740992
 for session, m in pairs(known.lots) do
  for N, lot in pairs(m) do
   if lot[11] <= now then due[#due + 1] = {lot, N}
   elseif lot[11] < known.lotDue then known.lotDue = lot[11] end
  end
 end
 table.sort(due, function(a, b)
  if a[1][7] ~= b[1][7] then return a[1][7] < b[1][7] end
  if a[1][1] ~= b[1][1] then return a[1][1] < b[1][1] end
  return a[2] < b[2]
 end)
 for k = 1, #due do recordOf(due[k][1], due[k][2]) end
end

local findRecord = F.pool_Pool_find
F.pool_Pool_find = function(t, o)
 local m = known.lots[t[o + 1]]
 local lot = m and m[t[o + 2]]
 if lot then return recordOf(lot, t[o + 2]) end
 return findRecord(t, o)
end

-- writeLots and readLots keep lots in the hash.
local function writeLots()
 if not known.lotted then return nil end
 known.lotted = nil
 local open, out, n = {}, {}, 0
 for _, m in pairs(known.lots) do
  for N, lot in pairs(m) do
   local l = open[lot]
   if not l then l = {} open[lot] = l end
   l[#l + 1] = N
  end
 end
 for lot, l in pairs(open) do
  out[n + 1] = packd(formatOf(#lot), unpack(lot, 1, #lot))
  table.sort(l)
  out[n + 2] = packd(formatOf(#l), unpack(l, 1, #l))
  n = n + 2
 end
 return table.concat(out)
end
readLots = function()
 known.lots, known.nopen, known.lotDue = {}, 0, 9007199254740992
 local v = call('HGET', K, 'lots')
 if not v then return end
 local at = 1
 while at <= #v do
  local lot = {unpackd(formatOf(lotHead), v, at)}
  at = lot[lotHead + 1]
  lot[lotHead + 1] = nil
  sound('lots', lot, lotHead)
  for _ = 1, lot[14] do
   local c = {unpackd(formatOf(4), v, at)}
   at = c[5]
   sound('lots', c, 4)
   for k = 1, 4 do lot[#lot + 1] = c[k] end
  end
  local m = known.lots[lot[1]]
  if not m then m = {} known.lots[lot[1]] = m end
  for _ = 1, lot[13] do
   local N
   N, at = unpackd('<d', v, at)
   sound('lots', {N}, 1)
   m[N] = lot
  end
  known.nopen = known.nopen + lot[13]
  if lot[11] < known.lotDue then known.lotDue = lot[11] end
 end
end

-- What belongs to a session that is gone is made records of.
local goneRecords = F.pool_Pool_gone
F.pool_Pool_gone = function(op)
 local m = known.lots[op[@op.ID.Session]]
 local all = {}
 for N in pairs(m or {}) do all[#all + 1] = N end
 table.sort(all)
 for k = 1, #all do recordOf(m[all[k]], all[k]) end
 return goneRecords(op)
end

-- A plain acquire says nothing but {-1, how many, session, number, agent, class, wait, alive, ttl, tie, amounts...}.
local plainHead = 10

-- spelt writes a plain acquire out.
local function spelt(item)
 local op = closing(item[3], item[4])
 op[1], op[@op.Agent], op[@op.Class] = 0, item[5], item[6]
 op[@op.Wait], op[@op.Alive], op[@op.TTL], op[@op.Tie] = item[7], item[8], item[9], item[10]
 for k = plainHead + 1, #item do op[@op.Amounts + k - plainHead - 1] = item[k] end
 return op
end

-- fresh reports that a session is not remembered: what comes before its first request sees that.
local function fresh(id)
 local i = F.pool_Pool_findSession(id)
 return i == 0 or F.pool_Pool_past(S_sessions[i] or ld(S_sessions, i))
end

-- quickAcquire grants up to many of the same request, and returns how many and the first number. Some that take
-- the long way may come before it.
local function quickAcquire(item, many, before)
 local session, N, agent, class, wait, alive, ttl = item[3], item[4], item[5], item[6], item[7], item[8], item[9]
 if N ~= 0 and (many > 1 or N >= 9007199254740992) or agent == '' or #agent > 256 or class >= cfg[@cfg.store.Spec.Classes.len]
  or ttl < 1000000000 or ttl > 86400000000000 or alive < 0 or alive > 86400000000000 or wait > 8640000000000000 or known.nopen > 4096 then
  return 0
 end
 local name = known.numbers[agent]
 if not name or name == 0 then return 0 end
 local nr = S_names[name] or ld(S_names, name)
 local caller = nr[2]
 if caller == 0 then return 0 end
 local now, limits = once[@once.now], #item - plainHead
 if limits > cfg[@cfg.store.Spec.Limits.len] then return 0 end
 for l = 0, limits - 1 do
  local amount = item[plainHead + 1 + l]
  if amount ~= 0 then
   if amount < 0 or amount > 1099511627776 then return 0 end
   local room = rooms[l] or look(l)
   if amount > room or ways[l] == 0 then return 0 end
   local cap = unscoped[l][2][@inst.Cap]
   if cap > 0 and amount > cap then return 0 end
   if band(cfg[@cfg.pool.Pool.policed], 2 ^ l) ~= 0 and spread(l, class) == nil then return 0 end
   if amount * many > room then many = (room - room % amount) / amount end
  end
 end
 local s = S_sessions[once[@once.lastSess]]
 if not s or s[@session.id] ~= session or s[@session.open] == 0 then
  if before and fresh(session) then return 0 end
  s = F.pool_Pool_sessionOf(session)
 end
 local high = s[@session.high]
 if N ~= 0 then
  if N <= high then return 0 end
  high = N - 1
 elseif once[@once.forgotten] > high then high = once[@once.forgotten] end
 s[@session.high], s[@session.last], s[@session.open] = high + many, now, s[@session.open] + many
 nr[1] = nr[1] + many

 local c = S_crecs[caller] or ld(S_crecs, caller)
 c[@caller.class], c[@caller.asked] = class, floor(now / 1048576)
 local lease = cfg[@cfg.pool.Pool.lease]
 if lease > 0 and once[@once.aliveTill + class] < now + lease then once[@once.aliveTill + class] = now + lease end
 once[@once.inFlight] = once[@once.inFlight] + many
 local second = past[@past.second]
 if now >= second + 1000000 then
  second = now - now % 1000000
  past[@past.second], past[@past.minute] = second, (now - now % 60000000) / 60000000
 end
 c[@caller.sent] = c[@caller.sent] + many
 if c[@caller.first] == 0 then c[@caller.first] = now end
 local inSecond = c[@caller.last] < second and many or c[@caller.inSecond] + many
 c[@caller.last], c[@caller.inSecond] = now, inSecond
 if inSecond > c[@caller.peak] then c[@caller.peak] = inSecond end
 sum[@caller.sent] = sum[@caller.sent] + many
 if sum[@caller.first] == 0 then sum[@caller.first] = now end
 local all = sum[@caller.last] < second and many or sum[@caller.inSecond] + many
 sum[@caller.last], sum[@caller.inSecond] = now, all
 if all > sum[@caller.peak] then sum[@caller.peak] = all end
 local note, minute = c[@caller.note], past[@past.minute]
 local p = note ~= 0 and (S_hperiods[note] or ld(S_hperiods, note))
 if not p or p[@period.name] ~= c[@caller.name] or p[@period.minute] ~= minute or p[@period.model] ~= 0 then
  note = F.pool_Pool_periodOf(c, 0, minute)
  p = S_hperiods[note] or ld(S_hperiods, note)
 end
 p[@period.sent] = p[@period.sent] + many
 if inSecond > p[@period.peak] then p[@period.peak] = inSecond end
 if all > p[@period.peakAll] then p[@period.peakAll] = all end

 ttl = (ttl - ttl % 1000) / 1000
 local tie = item[10]
 local due = now + ttl + 99999
 if tie == 1 and ttl > sessionLife then due = now + sessionLife + 99999 end
 due = due - due % 100000
 local lot = {session, high + 1, name, caller, once[@once.lastSess], class, now,
  wait < 0 and 9007199254740992 or now + (wait - wait % 1000) / 1000, ttl, (alive - alive % 1000) / 1000, due, note, many, 0, tie}
 local at = lotHead
 for l = 0, limits - 1 do
  local amount = item[plainHead + 1 + l]
  if amount ~= 0 then
   rooms[l], taken[l] = rooms[l] - amount * many, taken[l] + amount * many
   lot[at + 1], lot[at + 2], lot[at + 3], lot[at + 4] = l, amount, ways[l] == off and 0 or 1, once[@once.single + l]
   lot[14], at = lot[14] + 1, at + 4
   if class > 0 and band(cfg[@cfg.pool.Pool.policed], 2 ^ l) ~= 0 then
    local m = unscoped[l][2]
    if m[@inst.Cap] > 0 then
     local pace, window = S_paces[m[@inst.extra]] or ld(S_paces, m[@inst.extra]), S_defs[l + 1][@def.Window]
     for _ = 1, many do F.policy_Pace_Take(pace, now, amount, m[@inst.Cap], window) end
    end
   end
   local u = cfg[@cfg.pool.history.unitOf + l]
   if u >= 0 then p[@period.units + u] = p[@period.units + u] + amount * many end
  end
 end
 local m = known.lots[session]
 if not m then m = {} known.lots[session] = m end
 for k = high + 1, high + many do m[k] = lot end
 known.nopen, known.lotted = known.nopen + many, true
 if due < known.lotDue then known.lotDue = due end
 return many, high + 1
end

-- quickClose closes a ticket of a lot.
local function quickClose(session, N)
 local m = known.lots[session]
 local lot = m and m[N]
 if not lot then return false end
 local nr = S_names[lot[3]] or ld(S_names, lot[3])
 if nr[1] < 2 then return false end
 local at = lotHead
 for _ = 1, lot[14] do
  local l = lot[at + 1]
  if not rooms[l] then look(l) end
  if lot[at + 3] == 1 and (ways[l] == 0 or ways[l] == off) then return false end
  at = at + 4
 end
 at = lotHead
 for _ = 1, lot[14] do
  if lot[at + 3] == 1 then
   local l, amount = lot[at + 1], lot[at + 2]
   bound[l] = bound[l] + amount
   if ways[l] == places then rooms[l] = rooms[l] + amount end
  end
  at = at + 4
 end
 m[N] = nil
 lot[13] = lot[13] - 1
 known.nopen, known.lotted = known.nopen - 1, true
 nr[1] = nr[1] - 1
 once[@once.inFlight] = once[@once.inFlight] - 1
 local s = S_sessions[lot[5]] or ld(S_sessions, lot[5])
 s[@session.open], s[@session.last] = s[@session.open] - 1, once[@once.now]
 return true
end

-- results adds those of operations from one on to out, which has n entries.
local function results(out, n, ops, from, many)
 for k = from, from + many - 1 do
  local op = ops[k]
  for i = 1, resultSlots do out[n + i] = op[resultAt + i] end
  n = n + resultSlots
 end
 return n
end

-- carry carries out the items of a batch: operations, plain acquires, or {-2, session, numbers...} for closes.
-- What each item came to goes into out: the slots of a result, or for the others how many went without
-- ado, with the first number for acquires, and then the results of those that did not.
local nothing = {}
carry = function(clock, items, out)
 local now = once[@once.now]
 if clock > now then now = clock end
 if now >= known.lotDue then recordsDue(now) end
 local apply = F.pool_Pool_Apply
 if #items > 0 then
  local was = once[@once.now]
  once[@once.now] = now
  F.pool_Pool_heardSomething()
  once[@once.now] = was
 end
 if counts[@counts.waiting] == 0 and once[@once.firstGate] == 0 and now < once[@once.wheel.turns]
  and (once[@once.nextHush] == 0 or now < once[@once.nextHush]) then once[@once.now] = now -- time alone does nothing
 else apply(clock, nothing) end
 local calm = counts[@counts.waiting] == 0 and once[@once.firstGate] == 0 and plainPool()
 -- Others may set up a gate, and then all of the batch are told.
 for k = 1, #items do
  if items[k][1] >= 0 then calm = false end
 end
 local ops, n, quick, firsts = nothing, 0, {}, {}
 for k = 1, #items do
  local item = items[k]
  local kind = item[1]
  if kind == -1 then
   local many, went = item[2], 0
   if calm then
    while went < many do
     local got, first = quickAcquire(item, many - went, n > 0)
     if got == 0 then calm = false break end
     if went == 0 then firsts[k] = first end
     went = went + got
    end
   end
   quick[k] = went
   if n == 0 then ops = {} end
   for _ = went + 1, many do n = n + 1 ops[n] = spelt(item) end
  elseif kind == -2 then
   local session, j, last = item[2], 3, #item
   -- One that takes the long way does so after the others: what it frees is not needed by those that
   -- have room without it, and those that have not come after it.
   while calm and j <= last and quickClose(session, item[j]) do j = j + 1 end
   quick[k] = j - 3
   if n == 0 then ops = {} end
   for j = j, last do n = n + 1 ops[n] = closing(session, item[j]) end
  else
   if n == 0 then ops = {} end
   n = n + 1
   ops[n] = item
  end
 end
 settleUp()
 if n > 0 then
  local told = T[2] -- by what time alone has done
  T[2] = {}
  apply(clock, ops)
  if #told > 0 then
   for k = 1, #T[2] do told[#told + 1] = T[2][k] end
   T[2] = told
  end
 end
 if counts[@counts.waiting] > 0 and known.nopen > 0 and (once[@once.wake] == 0 or known.lotDue < once[@once.wake]) then
  once[@once.wake] = max(known.lotDue, once[@once.now] + 1)
 end
 if not out then return end
 local at = 1
 n = #out
 for k = 1, #items do
  local item = items[k]
  local left = 1
  if item[1] == -1 then
   out[n + 1], out[n + 2] = quick[k], firsts[k] or 0
   n, left = n + 2, item[2] - quick[k]
  elseif item[1] == -2 then
   out[n + 1] = quick[k]
   n, left = n + 1, #item - 2 - quick[k]
  end
  n = results(out, n, ops, at, left)
  at = at + left
 end
end
