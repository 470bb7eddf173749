
-- The commonest operations, an acquire that can go at once and a close, without ado: where nobody waits, no
-- gate is there, nothing is kept for others and no limit is scoped. They do what acquire and close do, with
-- what they charge added up for the whole batch; everything else goes the long way.
local quickNow, calm = -1, false
local rooms, taken, bound, ways = {}, {}, {}, {}
local plainKnown, plain

-- plainPool reports whether a pool's limits allow it.
local function plainPool()
 if plainKnown == known then return plain end
 plainKnown = known
 plain = cfg[@cfg.pool.Pool.policed] == 0 and cfg[@cfg.pool.Pool.anyStrict] == 0
 for l = 0, cfg[@cfg.store.Spec.Limits.len] - 1 do
  if once[@once.single + l] == 0 then plain = false end
 end
 return plain
end

-- ways of charging
local held, fixed, off, places = 1, 2, 3, 4

-- look brings a limit to now and finds out how much room it has, once for a batch.
local function look(l)
 local u = unscoped[l]
 local m, d, r = u[2], S_defs[l + 1] or ld(S_defs, l + 1), u[3]
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
  local m, d, r, take, bind, way = u[2], S_defs[l + 1], u[3], taken[l], bound[l], ways[l]
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

local function quickAcquire(op)
 local agent, class, ttl = op[@op.Agent], op[@op.Class], op[@op.TTL]
 if op[@op.Force] ~= 0 or op[@op.Spent] ~= 0 or op[@op.Emergency] ~= 0 or op[@op.Retry] ~= 0 or op[@op.ID.N] ~= 0
  or op[@op.User] ~= '' or op[@op.Model] ~= '' or op[@op.Tool] ~= '' or op[@op.Key] ~= ''
  or agent == '' or #agent > 256 or class >= cfg[@cfg.store.Spec.Classes.len]
  or ttl < 1000000000 or ttl > 86400000000000 or op[@op.Alive] < 0 or op[@op.Alive] > 86400000000000 or op[@op.Wait] > 8640000000000000 then
  return false
 end
 local name = known.numbers[agent]
 if not name or name == 0 then return false end
 local nr = S_names[name] or ld(S_names, name)
 local caller = nr[2]
 if caller == 0 then return false end
 local limits = cfg[@cfg.store.Spec.Limits.len]
 for l = 0, limits - 1 do
  local amount = op[@op.Amounts + l]
  if amount ~= 0 then
   local room = rooms[l] or look(l)
   if amount < 0 or amount > room or ways[l] == 0 or amount > 1099511627776 then return false end
   local cap = unscoped[l][2][@inst.Cap]
   if cap > 0 and amount > cap then return false end
  end
 end
 local now, session = once[@once.now], op[@op.ID.Session]
 local s = S_sessions[once[@once.lastSess]]
 if not s or s[@session.id] ~= session or s[@session.open] == 0 then s = F.pool_Pool_sessionOf(session) end
 local high = s[@session.high]
 if once[@once.forgotten] > high then high = once[@once.forgotten] end
 high = high + 1
 s[@session.high], s[@session.last], s[@session.open] = high, now, s[@session.open] + 1
 op[@op.ID.N] = high

 local i = slabNew(S_tickets)
 local t = S_tickets[i] or ld(S_tickets, i)
 for k = 1, @ticket.charges - 1 do t[k] = 0 end
 t[@ticket.id.Session], t[@ticket.id.N], t[@ticket.since], t[@ticket.granted] = session, high, now, now
 local wait, alive = op[@op.Wait], op[@op.Alive]
 t[@ticket.deadline] = wait < 0 and 9007199254740992 or now + (wait - wait % 1000) / 1000
 ttl = (ttl - ttl % 1000) / 1000
 t[@ticket.ttl], t[@ticket.alive], t[@ticket.class], t[@ticket.state] = ttl, (alive - alive % 1000) / 1000, class, 3
 t[@ticket.who.agent], t[@ticket.caller], t[@ticket.session] = name, caller, once[@once.lastSess]
 nr[1] = nr[1] + 1
 local n, at = 0, @ticket.charges
 for l = 0, limits - 1 do
  local amount = op[@op.Amounts + l]
  if amount ~= 0 then
   rooms[l], taken[l] = rooms[l] - amount, taken[l] + amount
   t[at], t[at + 1], t[at + 2], t[at + 3], t[at + 4] = amount, now, ways[l] == off and 0 or 1, once[@once.single + l], l
   n, at = n + 1, at + 5
  end
 end
 t[@ticket.n] = n
 indexAdd(X.ticketIx, F.pool_idHash(t, @ticket.id.Session - 1), i)

 local age = floor(now / 1048576)
 local c = S_crecs[caller] or ld(S_crecs, caller)
 c[@caller.class], c[@caller.asked] = class, age
 local lease = cfg[@cfg.pool.Pool.lease]
 if lease > 0 and once[@once.aliveTill + class] < now + lease then once[@once.aliveTill + class] = now + lease end

 once[@once.inFlight] = once[@once.inFlight] + 1
 local second = past[@past.second]
 if now >= second + 1000000 then
  second = now - now % 1000000
  past[@past.second], past[@past.minute] = second, (now - now % 60000000) / 60000000
 end
 c[@caller.sent] = c[@caller.sent] + 1
 if c[@caller.first] == 0 then c[@caller.first] = now end
 local inSecond = c[@caller.last] < second and 1 or c[@caller.inSecond] + 1
 c[@caller.last], c[@caller.inSecond] = now, inSecond
 if inSecond > c[@caller.peak] then c[@caller.peak] = inSecond end
 sum[@caller.sent] = sum[@caller.sent] + 1
 if sum[@caller.first] == 0 then sum[@caller.first] = now end
 local all = sum[@caller.last] < second and 1 or sum[@caller.inSecond] + 1
 sum[@caller.last], sum[@caller.inSecond] = now, all
 if all > sum[@caller.peak] then sum[@caller.peak] = all end
 local note, minute = c[@caller.note], past[@past.minute]
 local p = note ~= 0 and (S_hperiods[note] or ld(S_hperiods, note))
 if not p or p[@period.name] ~= c[@caller.name] or p[@period.minute] ~= minute or p[@period.model] ~= 0 then
  note = F.pool_Pool_periodOf(c, 0, minute)
  p = S_hperiods[note] or ld(S_hperiods, note)
 end
 t[@ticket.note] = note
 p[@period.sent] = p[@period.sent] + 1
 if inSecond > p[@period.peak] then p[@period.peak] = inSecond end
 if all > p[@period.peakAll] then p[@period.peakAll] = all end
 at = @ticket.charges
 for _ = 1, n do
  local u = cfg[@cfg.pool.history.unitOf + t[at + 4]]
  if u >= 0 then p[@period.units + u] = p[@period.units + u] + t[at] end
  at = at + 5
 end

 -- the wheel
 local step = now + ttl + 99999
 step = (step - step % 100000) / 100000
 local slot = step % 4096
 local slots = once.slots
 local next = slots[slot + 1]
 t[@ticket.due], t[@ticket.slot], t[@ticket.next] = step * 100000, slot, next
 if next ~= 0 then (S_tickets[next] or ld(S_tickets, next))[@ticket.prev] = i end
 slots[slot + 1] = i
 local count = once[@once.wheel.count] + 1
 once[@once.wheel.count] = count
 if count == 1 or step < once[@once.wheel.next] then once[@once.wheel.next] = step end

 op[@op.Result.State], op[@op.Result.ID.Session], op[@op.Result.ID.N], op[@op.Result.Now], op[@op.Result.GrantedAt] = 0, session, high, now, now
 op[@op.Result.Reason.Limit] = -1
 return true
end

local function quickClose(op)
 if op[@op.Spent] ~= 0 then return false end
 local limits = cfg[@cfg.store.Spec.Limits.len]
 for l = 0, limits - 1 do
  if op[@op.Amounts + l] ~= 0 then return false end
 end
 local key = F.pool_idHash(op, @op.ID.Session - 1)
 local i = indexSeek(X.ticketIx, key, 0)
 if i == 0 then return false end
 local t = S_tickets[i] or ld(S_tickets, i)
 if t[@ticket.state] ~= 3 or t[@ticket.who.user] ~= 0 or t[@ticket.who.model] ~= 0 or t[@ticket.who.tool] ~= 0 or t[@ticket.who.key] ~= 0 then return false end
 local name = t[@ticket.who.agent]
 local nr = S_names[name] or ld(S_names, name)
 if nr[1] < 2 then return false end
 local n, at = t[@ticket.n], @ticket.charges
 for k = 1, n do
  local l, mode = t[at + 4], t[at + 2]
  if not rooms[l] then look(l) end
  if mode == 2 or mode == 1 and (ways[l] == 0 or ways[l] == off) then return false end
  at = at + 5
 end
 at = @ticket.charges
 for k = 1, n do
  local l = t[at + 4]
  if t[at + 2] == 1 then
   bound[l] = bound[l] + t[at]
   if ways[l] == places then rooms[l] = rooms[l] + t[at] end
  end
  at = at + 5
 end
 local now = once[@once.now]
 once[@once.inFlight] = once[@once.inFlight] - 1
 if t[@ticket.due] ~= 0 then
  local prev, next = t[@ticket.prev], t[@ticket.next]
  if prev ~= 0 then (S_tickets[prev] or ld(S_tickets, prev))[@ticket.next] = next else once.slots[t[@ticket.slot] + 1] = next end
  if next ~= 0 then (S_tickets[next] or ld(S_tickets, next))[@ticket.prev] = prev end
  t[@ticket.due], t[@ticket.prev], t[@ticket.next] = 0, 0, 0
  once[@once.wheel.count] = once[@once.wheel.count] - 1
 end
 nr[1] = nr[1] - 1
 indexRemove(X.ticketIx, key, i)
 local s = S_sessions[t[@ticket.session]] or ld(S_sessions, t[@ticket.session])
 s[@session.open], s[@session.last] = s[@session.open] - 1, now
 t[@ticket.state] = 0
 slabRecycle(S_tickets, i)
 once[@once.stirred] = 1
 op[@op.Result.State], op[@op.Result.ID.Session], op[@op.Result.ID.N], op[@op.Result.Now] = 3, op[@op.ID.Session], op[@op.ID.N], now
 op[@op.Result.Reason.Limit] = -1
 return true
end

local longWay = F.pool_Pool_apply
F.pool_Pool_apply = function(i)
 local ops = T[1]
 local op = ops[i + 1]
 if i == 0 then
  calm = counts[@counts.waiting] == 0 and once[@once.firstGate] == 0 and plainPool()
 end
 if calm then
  local kind = op[1]
  if kind == 0 and quickAcquire(op) or kind == 5 and quickClose(op) then
   if i == #ops - 1 then settleUp() end
   return
  end
 end
 settleUp()
 longWay(i)
 calm = counts[@counts.waiting] == 0 and once[@once.firstGate] == 0 and plainPool()
end
