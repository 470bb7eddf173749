-- Translated from internal/pool by go generate: do not edit.
local resultAt, resultSlots = 30, 12
local S_answers, S_crecs, S_defs, S_gates, S_hperiods, S_insts, S_leases, S_limits, S_members, S_models, S_paces, S_qdomains, S_qflows, S_qlanes, S_qmembers, S_qspots, S_qwaiters, S_rings, S_sessions, S_stocks, S_tnodes, S_counts, S_once, S_past, S_sum, S_cfg, S_tree
local cfg, tree, counts, once, past, sum, unscoped
-- What lives as long as the pool is known, and not only as long as a call.
local function setAside()
 if known then known.tallies, known.tell, known.before = T[7], T[8], T[9] end
 T[7], T[8], T[9] = {}, {}, {}
end
local function useSlabs(s)
 S_names, S_answers, S_crecs, S_defs, S_gates, S_hperiods, S_insts, S_leases, S_limits, S_members, S_models, S_paces, S_qdomains, S_qflows, S_qlanes, S_qmembers, S_qspots, S_qwaiters, S_rings, S_sessions, S_stocks, S_tickets, S_tnodes, S_counts, S_once, S_past, S_sum, S_cfg, S_tree = unpack(s)
end
local function begin()
 setAside()
 known = {count = 0, calls = 0, items = 0, since = 0, expires = 0, entries = {}, numbers = {}, texts = {}, ids = {}, fresh = {}, struck = {}, replies = {}, told = {}, ntold = 0, lots = {}, lotAt = {}, lotIx = {}, keptLots = false, changed = {}, nchanged = 0, logs = 0}
 nothingChanged(known)
 known.slabs = { -- in the order of useSlabs
  slabOf('N', 3, {}), slabOf("A", 39, {}), slabOf("B", 13, {}), slabOf("C", 9, {}),
  slabOf("D", 41, {'marks'}), slabOf("E", 17, {}), slabOf("F", 30, {}), slabOf("G", 27, {}),
  slabOf("H", 14, {}, true), slabOf("I", 8, {}), slabOf("J", 29, {}), slabOf("K", 4, {}),
  slabOf("L", 14, {}), slabOf("M", 17, {}), slabOf("A'", 384, {}), slabOf("B'", 10, {}),
  slabOf("C'", 3, {}), slabOf("D'", 7, {}), slabOf("E'", 105, {'slot'}), slabOf("F'", 8, {}),
  slabOf("G'", 23, {'ring'}), slabOf("H'", 115, {}), slabOf("I'", 7, {}), slabOf('counts', 15, {}),
  slabOf('once', 173, {'slots'}), slabOf('past', 3, {'week'}), slabOf('sum', 14, {}), slabOf('cfg', 110, {}, true),
  slabOf('tree', 1, {}),
 }
 useSlabs(known.slabs)
 S_insts.kept = true
 cfg = ld(S_cfg, '')
 S_tickets.n = 35 + 5 * cfg[4]
 S_qlanes.n = 33 + 39 * cfg[110]
end
local largest = 31
local alone = {__index = function(t, i)
 local at = once[49 + i]
 local u = {at}
 if at ~= 0 then
  u[2] = S_insts[at] or ld(S_insts, at)
  local ring = u[2][15]
  if ring ~= 0 then u[3] = S_rings[ring] or ld(S_rings, ring) end
 end
 rawset(t, i, u)
 return u
end}
local function again()
 unscoped = setmetatable({}, alone)
 tree = S_tree[''] or ld(S_tree, '')
 counts = S_counts[''] or ld(S_counts, '')
 once = S_once[''] or ld(S_once, '')
 past = S_past[''] or ld(S_past, '')
 sum = S_sum[''] or ld(S_sum, '')
end
local function takeUp(k)
 setAside()
 known = k
 T[7], T[8], T[9] = k.tallies, k.tell, k.before
 useSlabs(k.slabs)
 cfg = S_cfg['']
 again()
end
local X = {ticketIx = 'ia', instIx = 'ib', sessIx = 'ic', flowIx = 'id', membIx = 'ie', laneIx = 'if', domIx = 'ig', spotIx = 'ih', }
local function blank(kind, session, N) return {kind,session,N,"","","","","",0,0,0,0,{},0,0,0,0,0,0,0,{},0,"",0,0,0,"",{},0,0,0,0,0,0,0,0,0,0,"",0,0,0} end
local function spelt(l, k)
 local op, w = blank(0, l[2], 0), l[13]
 op[5], op[6], op[7], op[8], op[9], op[17], op[10] = l[4], l[5], l[6], l[7], l[8], l[9], l[10]
 op[15], op[16] = l[11] * 1000, l[12] * 1000
 local waits = l[14]
 op[4], op[14] = l[15][k], (waits[k] or waits[1]) * 1000
 for i = 1, w do
  local n = l[16][(k - 1) * w + i]
  if n ~= 0 then table.insert(op[13], {'', i - 1, n}) end
 end
 return op
end
local function speltAnswer(e, k)
 local op = blank(4, e[2], e[6][k])
 op[18] = 1
 return op
end
local function speltClose(e, k)
 local op, w = blank(5, e[2], e[6][k]), e[5]
 for i = 1, w do
  local n = e[7][(k - 1) * w + i]
  if n >= 0 then table.insert(op[13], {'', i - 1, n}) end
 end
 return op
end
local lotSession, lotAgents, lotStates, lotCallers = 2, 15, 29, 28
local endSession, endAnswer, endClose, endNumbers = 2, 3, 4, 6
local lotSlots, lotEnded, lotKind, touchKind = 32, -1, -1, 12
local function newTally(caller) return {caller,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0} end
local tallies, told, before = 7, 8, 9
local tallySlots, tallyDirty, tallyListed, tallyMarked = 20, 5, 6, 7
local verdicts = {[0] = "none", [1] = "ok", [2] = "throttled", [3] = "overloaded", [4] = "quota gone", [5] = "billing stop", [6] = "error", [7] = "unreachable", }
F.store_Verdict_String = function(v) return verdicts[v] or 'invalid' end
F.flat_Tree_priority = function()
 tree[1] = (tree[1] + 1) % 1048576
 return tree[1] * 2654435761 % 4294967296
end
F.pool_Pool_Apply = function(now_, ops) -- internal/pool/pool.go:260
 F.pool_Pool_begin(now_, #ops > 0)
 F.pool_Pool_carryOut(ops)
end
F.pool_Pool_begin = function(now_, heard) -- internal/pool/pool.go:266
 once[1] = once[1] > now_ and once[1] or now_
 if #T[2] > 0 then T[2] = {} end
 if once[1] >= cfg[1] then F.pool_Pool_seeToLots() end
 if once[1] >= past[3] + 1000000 then F.pool_Pool_turnSecond() end
 if cfg[2] > 0 then F.pool_Pool_enterSome(64) end
 if heard then F.pool_Pool_heardSomething() end
 if F.pool_headerTime_isDue(once, 29) then F.pool_headerTime_judge(once, 29) end
 if once[1] >= once[135] then F.pool_Pool_expireTickets() end
 if once[155] ~= 0 and once[1] >= once[155] then F.pool_Pool_hush() end
 if once[26] ~= 0 then F.pool_Pool_dropStale() end
end
F.pool_Pool_carryOut = function(ops) -- internal/pool/pool.go:310
 T[1] = ops
 for i = 0, #ops - 1 do
  if ops[i+1][1] ~= 12 then
   F.pool_Pool_SpellOut()
   break
  end
 end
 for i = 0, #ops - 1 do F.pool_Pool_apply(i) end
 if counts[3] == 0 then once[2] = 0
 elseif once[9] ~= 0 or (once[2] ~= 0 and once[1] >= once[2]) then F.pool_Pool_serve()
 else F.pool_Pool_wakeAtDue() end
 once[9] = 0
 if once[8] ~= 0 or once[26] ~= 0 then
  once[8] = 0
  F.pool_Pool_concludeAll()
 end
end
F.pool_Pool_BeginFast = function(now_) -- internal/pool/fast.go:61
 F.pool_Pool_begin(now_, true)
 if counts[3] > 0 or once[26] ~= 0 or once[140] > 0 then return false end
 once[7] = once[7] + 1
 return true
end
F.pool_Pool_EndFast = function() -- internal/pool/fast.go:71
 for k = 0, #T[6] - 1 do F.pool_Pool_enterSums(T[6][k+1]) end
 T[6] = {}
 once[2], once[9] = 0, 0
end
F.pool_Pool_FastLot = function(l) -- internal/pool/lots.go:54
 local n, w = #l[15], l[13]
 if l[8] >= cfg[3] or l[12] <= 0 or n == 0 or w > cfg[4] or l[3] ~= 0 then return 0 end
 l[21], l[22], l[23], l[24], l[25] = 0, l[4] ~= "" and F.flat_Names_Find(l[4]) or 0, l[5] ~= "" and F.flat_Names_Find(l[5]) or 0, l[6] ~= "" and F.flat_Names_Find(l[6]) or 0, l[7] ~= "" and F.flat_Names_Find(l[7]) or 0
 if (l[23] == 0 and l[5] ~= "") or (l[22] == 0 and l[4] ~= "") or (l[24] == 0 and l[6] ~= "") or (l[25] == 0 and l[7] ~= "") then
  return 0
 end
 local callers = {nil,nil,nil,nil}
 for i = 0, n - 1 do
  local caller = F.pool_Pool_callerNamed(l[15][i+1])
  if caller == 0 then return 0 end
  callers[i+1] = caller
 end
 if band(cfg[5], 1) ~= 0 then
  l[21] = l[15][0+1] ~= "" and F.flat_Names_Find(l[15][0+1]) or 0
  for i = 0, n - 1 do if l[15][i+1] ~= l[15][0+1] then return 0 end end
 end
 do
  local w, w_o = cfg, 5
  if cfg[11] ~= once[7] or w[w_o+3] ~= l[23] or w[w_o+5] ~= l[25] or (cfg[5] ~= 0 and (w[w_o+1] ~= l[21] or w[w_o+2] ~= l[22] or w[w_o+4] ~= l[24])) then
   F.pool_Pool_choose(l[21], l[22], l[23], l[24], l[25])
  end
 end
 local totals, takers, amounts = {nil,nil,nil,nil}, {nil,nil,nil,nil}, l[16]
 l[27] = 0
 for limit = 0, w - 1 do
  local total, asks = 0, 0
  for i = 0, n - 1 do
   local amount = amounts[(i * w + limit)+1]
   if amount ~= 0 then
    total = total + amount
    asks = asks + 1
   end
  end
  totals[limit+1], takers[limit+1] = total, asks
  if asks ~= n then l[27] = 1 end
  if asks ~= 0 then
   local k = cfg[limit+12]
   if k < 0 or total < 0 then return 0 end
   local s = T[6][k+1]
   if total > s[2] or (s[6] ~= 0 and F.pool_Pool_keepsFrom(s, total, l[8])) then return 0 end
  end
 end
 l[28] = callers
 F.pool_Pool_chargeLot(l, totals, takers)
 F.pool_Pool_tellLot(l)
 F.pool_Pool_holdLot(l)
 return l[3]
end
F.pool_Pool_FastEnds = function(e) -- internal/pool/lotends.go:19
 local at = 0
 while at < #e[6] do
  local l, to = F.pool_Pool_runOf(e, at)
  if l == nil then
   if not F.pool_Pool_endOne(e, at) then return at end
  elseif e[4] == 0 then F.pool_Pool_answerLot(l, e, at, to)
  elseif not F.pool_Pool_closeLot(l, e, at, to) then return at end
  at = to
 end
 return at
end
F.pool_Pool_SpellOut = function() -- internal/pool/lotspell.go:9
 local l = F.pool_Pool_lotAt(0)
 while l ~= nil do
  F.pool_Pool_spellOut(l)
  l = F.pool_Pool_lotAt(0)
 end
 F.pool_Pool_enterTallies()
end
F.pool_Pool_enterTallies = function() -- internal/pool/tallies.go:71
 F.pool_Pool_enterSome(cfg[2])
 if #T[9] > 0 then T[9] = {} end
 local t2_ = T[8]
 for t1_ = 0, #t2_ - 1 do
  local t = t2_[t1_+1]
  t[6] = 0
  if t[5] ~= 0 then F.pool_Pool_enterTally(t) end
 end
 if #T[8] > 0 then T[8] = {} end
end
F.pool_Pool_crowdCaller = function() -- internal/pool/crowd.go:134
 if slabLen(S_crecs) < 32768 then return 0 end
 return far(1, F.flat_Names_Tags(once[113]))
end
F.pool_Pool_seeToLots = function() -- internal/pool/lots.go:225
 cfg[1] = 9007199254740992
 local i = 0
 local l = F.pool_Pool_lotAt(i)
 while l ~= nil do
  local kept = (S_sessions[l[20]] or ld(S_sessions, l[20]))[4]
  if l[18] <= once[1] and l[9] == 1 and kept > once[1] then
   l[18] = min(kept, l[17] + (l[12] < 60000000 and l[12] or 60000000))
  end
  if l[18] <= once[1] then F.pool_Pool_spellOut(l)
  else
   cfg[1] = cfg[1] < l[18] and cfg[1] or l[18]
   i = i + 1
  end
  l = F.pool_Pool_lotAt(i)
 end
end
F.pool_Pool_turnSecond = function() -- internal/pool/pool.go:299
 local silence = once[1] >= past[3] + 120000000
 if F.pool_history_turn(once[1]) then F.pool_Pool_turnTallies() end
 if silence then F.pool_Pool_enterTallies() end
end
F.pool_Pool_enterSome = function(n) -- internal/pool/tallies.go:57
 local i = 0
 while i < n and cfg[2] > 0 do
  cfg[2] = cfg[2] - 1
  local t = T[9][cfg[2]+1]
  t[6] = 0
  if t[5] ~= 0 and t[3] ~= past[2] then F.pool_Pool_enterTally(t)
  elseif t[5] ~= 0 then F.pool_Pool_enlist(t) end
  i = i + 1
 end
end
F.pool_Pool_heardSomething = function() -- internal/pool/sessions.go:82
 if once[1] - once[3] > 6000000 then once[4] = once[1] end
 once[3] = once[1]
end
F.pool_headerTime_isDue = function(h, h_o) -- internal/pool/header.go:24
 local few = h[h_o+17] - h[h_o+19]
 return few > 3 or (few > 0 and h[h_o+17] <= 16)
end
F.pool_headerTime_judge = function(h, h_o) -- internal/pool/header.go:30
 h[h_o+19] = h[h_o+17]
 local sorted, k = copy_(h, h_o, 16), h[h_o+17] < 16 and h[h_o+17] or 16
 sortPart(sorted, 0, k)
 h[h_o+18] = sorted[quo(k - 1, 2)+1]
end
F.pool_Pool_expireTickets = function() -- internal/pool/wheel.go:88
 local w, w_o, now_ = once, 133, (once[1] - fmod(once[1], 100000)) / 100000
 w[w_o+2] = (now_ + 1) * 100000
 if now_ == w[w_o+1] then return end
 local next_ = F.pool_wheel_nextStep(w, w_o)
 if next_ ~= 0 and next_ <= now_ then
  local end_, s = once[1], max(w[w_o+1] + 1, next_)
  while s <= now_ and (w[w_o+4] > 0 or w[w_o+5] ~= 0) do
   once[1] = s * 100000
   if once[155] ~= 0 and once[1] >= once[155] then F.pool_Pool_hush() end
   if w[w_o+4] > 0 then F.pool_Pool_expireSlot(s) end
   local i = w[w_o+5]
   while i ~= 0 and (S_tickets[i] or ld(S_tickets, i))[6] <= once[1] do
    F.pool_Pool_expire(i)
    i = w[w_o+5]
   end
   s = s + 1
  end
  w[w_o+1], once[1] = now_, end_
  F.pool_wheel_findNext(w, w_o)
 end
 w[w_o+1] = now_
 F.pool_Pool_sweepSome(64)
end
F.pool_Pool_hush = function() -- internal/pool/members.go:243
 while once[155] ~= 0 and once[155] <= once[1] do
  local at = once[155]
  while once[149] ~= 0 and F.pool_member_silentFrom((S_members[once[149]] or ld(S_members, once[149]))) <= at do
   local i = once[149]
   F.pool_Pool_unlink(i)
   local m = S_members[i] or ld(S_members, i)
   m[2], m[8] = 1, once[151]
   if once[151] ~= 0 then
    local t1_ = (S_members[once[151]] or ld(S_members, once[151]))
    t1_[7] = i
   end
   once[151] = i
  end
  F.pool_Pool_weigh(at)
 end
end
F.pool_Pool_dropStale = function() -- internal/pool/pauses.go:135
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  local next_ = g[41]
  F.pause_State_Allow(g, once[1])
  if F.pool_pauseRec_stale(g, once[1]) and not F.pool_Pool_rampStays(g) then F.pool_Pool_dropPause(i) end
  i = next_
 end
end
F.pool_Pool_apply = function(i) -- internal/pool/pool.go:349
 local op = T[1][i+1]
 op[31], op[32], op[33], op[34], op[35], op[36], op[37], op[38], op[39], op[40], op[41], op[42] = 0, op[2], op[3], once[1], 0, 0, 0, 0, "", 0, 0, 0
 local t1_ = op[1]
 if t1_ == 0 then
  F.pool_Pool_acquire(i)
  return 
 elseif t1_ == 1 then
  F.pool_Pool_poll(op)
  return 
 elseif t1_ == 12 then
  F.pool_Pool_touched(op)
  return 
 end
 once[9] = 1
 local t2_ = op[1]
 if t2_ == 2 then F.pool_Pool_cancel(op)
 elseif t2_ == 3 then F.pool_Pool_renew(i)
 elseif t2_ == 4 then F.pool_Pool_answer(op)
 elseif t2_ == 5 then F.pool_Pool_close(op)
 elseif t2_ == 6 then F.pool_Pool_observe(op)
 elseif t2_ == 7 then F.pool_Pool_pause(op)
 elseif t2_ == 8 then F.pool_Pool_resume(op)
 elseif t2_ == 9 then F.pool_Pool_heartbeat(op)
 elseif t2_ == 10 then F.pool_Pool_leave(op)
 elseif t2_ == 11 then F.pool_Pool_launch(op)
 elseif t2_ == 13 then F.pool_Pool_forget(op)
 elseif t2_ == 14 then F.pool_Pool_gone(op)
 else F.pool_refuse(op, 9, 0) end
end
F.pool_Pool_serve = function() -- internal/pool/serve.go:11
 once[2] = 0
 if counts[3] == 0 then return end
 F.order_Queue_Wake(once[1])
 while F.pool_Pool_serveOne() do
 end
 local at, ok = F.order_Queue_NextWake()
 if ok then F.pool_Pool_wakeAt(at) end
 F.pool_Pool_wakeAtDue()
 if once[156] ~= 0 then F.pool_Pool_wakeAt(once[156]) end
end
F.pool_Pool_wakeAtDue = function() -- internal/pool/serve.go:29
 local at = F.pool_wheel_nextDue(once, 133)
 if at ~= 0 then F.pool_Pool_wakeAt(at) end
end
F.pool_Pool_concludeAll = function() -- internal/pool/pool.go:394
 local left = false
 for i = 0, #T[1] - 1 do left = F.pool_Pool_conclude(T[1][i+1]) or left end
 if left then F.pool_Pool_serve() end
end
F.pool_Pool_enterSums = function(s) -- internal/pool/fast.go:114
 local in_ = S_insts[s[1]] or ld(S_insts, s[1])
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 if (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))[7] ~= 0 then in_[16] = in_[16] + s[9] end
 s[9] = 0
 if s[14] ~= 0 then
  F.policy_Pace_Take((S_paces[in_[18]] or ld(S_paces, in_[18])), once[1], s[14], in_[1], d[4])
  s[14] = 0
 end
 if s[10] ~= 0 then
  in_[17] = (floor(once[1] / 2^(20)) % 4294967296)
  F.meter_Meter_TakeAll(in_, d, r, once[1], s[3], s[10], s[4])
  s[10] = 0
 end
 if s[11] ~= 0 or s[12] ~= 0 or s[13] ~= 0 then
  F.meter_Meter_SettleAll(in_, d, r, once[1], s[11], s[12], s[13])
  s[11], s[12], s[13] = 0, 0, 0
 end
end
F.pool_Pool_choose = function(agent, user, model, tool, key) -- internal/pool/fast.go:137
 cfg[11] = once[7]
 cfg[6], cfg[7], cfg[8], cfg[9], cfg[10] = agent, user, model, tool, key
 for limit = 0, cfg[4] - 1 do
  local i, per = once[limit+49], (S_limits[limit+1] or ld(S_limits, limit+1))[7]
  if per ~= 0 then
   local name = F.pool_names_sole(cfg, 5, per)
   if name ~= 0 then i = F.pool_Pool_ownOf(limit, name)
   else i = F.pool_Pool_findInst(limit, (F.pool_scoped(cfg, 5, per)), 0) end
  end
  cfg[limit+12] = -1
  if i ~= 0 then
   local in_ = S_insts[i] or ld(S_insts, i)
   F.pool_Pool_sumsOf(i, in_)
   cfg[limit+12] = in_[30]
  end
 end
end
F.pool_Pool_keepsFrom = function(s, amount, class) -- internal/pool/fast.go:172
 local in_ = S_insts[s[1]] or ld(S_insts, s[1])
 local d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
 if s[6] == 1 then return class > 0 and F.pool_Pool_paced(s, in_, d, amount) end
 if in_[1] == 0 then return false end
 if ((d[1] == 2 and in_[8] ~= 0)) then
  local size = F.meter_Meter_Open(in_, d, (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil))
  return size - (s[2] - amount) > F.policy_Part(size, ((class > 0 and cfg[28] ~= 0 and (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))[13] ~= 0) and 0 or cfg[class+53])) or not F.policy_Breaker_Idle(F.pool_Pool_stockOf(in_), 9)
 end
 if d[1] == 1 and class > 0 and cfg[28] ~= 0 and F.pool_Pool_paced(s, in_, d, amount) then return true end
 return cfg[29] > 0 and F.pool_Pool_binds(in_, d) and s[2] - amount < F.policy_Part(F.meter_Meter_Open(in_, d, (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)), ((class == 0) and cfg[30] or cfg[29]))
end
F.pool_Pool_chargeLot = function(l, totals, takers) -- internal/pool/lots.go:116
 local w = l[13]
 l[30], l[31], l[32] = {nil,nil,nil,nil}, {nil,nil,nil,nil}, {nil,nil,nil,nil}
 for limit = 0, w - 1 do
  l[30][limit+1], l[31][limit+1], l[32][limit+1] = 0, 0, 0
  if takers[limit+1] ~= 0 then
   local s = T[6][cfg[limit+12]+1]
   l[30][limit+1], l[31][limit+1], l[32][limit+1] = s[1], s[4], s[3]
   s[2] = s[2] - totals[limit+1]
   s[10] = s[10] + totals[limit+1]
   s[9] = s[9] + ((takers[limit+1] + 2147483648) % 4294967296 - 2147483648)
   if s[6] == 2 then
    local in_ = S_insts[s[1]] or ld(S_insts, s[1])
    F.pool_Pool_took(l[8], takers[limit+1], totals[limit+1], in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)))
   elseif s[6] == 1 and l[8] > 0 then s[14] = s[14] + totals[limit+1] end
  end
 end
end
F.pool_Pool_tellLot = function(l) -- internal/pool/lots.go:139
 local n, w, model, class, retries = #l[15], l[13], l[23], l[8], 0
 if l[10] ~= 0 then retries = 1 end
 local all = sum
 if all[13] < past[3] then all[4] = 0 end
 local before = all[4]
 F.pool_caller_count(all, once[1], past[3], n, retries * (n % 4294967296))
 l[19] = past[2]
 local callers, tallies = l[28], T[7]
 for i = 0, n - 1 do
  local t = tallies[callers[i+1]+1]
  if t[5] == 0 or t[2] ~= model or t[3] ~= past[2] then F.pool_Pool_tell(t, model) end
  if t[8] == 0 then t[13] = once[1] end
  if t[14] < past[3] then t[10] = 0 end
  t[8] = t[8] + 1
  t[9] = t[9] + retries
  t[10] = t[10] + 1
  t[11], t[12] = t[11] > t[10] and t[11] or t[10], max(t[12], before + (i % 4294967296) + 1)
  t[4], t[14] = class, once[1]
  if t[7] == 0 then F.pool_Pool_mark(t) end
 end
 local amounts = l[16]
 for limit = 0, w - 1 do
  local unit = cfg[limit+33]
  if unit >= 0 and l[30][limit+1] ~= 0 then
   for i = 0, n - 1 do
    tallies[callers[i+1]+1][unit+15] = tallies[callers[i+1]+1][unit+15] + amounts[(i * w + limit)+1]
   end
  end
 end
end
F.pool_Pool_holdLot = function(l) -- internal/pool/lots.go:184
 local n, from = #l[15], F.pool_Pool_sessionOf(l[2])
 l[3] = (from[2] > once[28] and from[2] or once[28]) + 1
 from[2] = l[3] + u64(n) - 1
 from[5] = from[5] + ((n + 2147483648) % 4294967296 - 2147483648)
 if l[9] == 2 then from[7] = from[7] + ((n + 2147483648) % 4294967296 - 2147483648) end
 l[20] = once[27]
 if cfg[49] > 0 and once[l[8]+11] < once[1] + cfg[49] then once[l[8]+11] = once[1] + cfg[49] end
 local _, _ = (l[22] ~= 0 and F.flat_Names_Keep(l[22]) or 0), (l[23] ~= 0 and F.flat_Names_Keep(l[23]) or 0)
 local _, _ = (l[24] ~= 0 and F.flat_Names_Keep(l[24]) or 0), (l[25] ~= 0 and F.flat_Names_Keep(l[25]) or 0)
 l[17], l[26] = once[1], n
 l[18] = once[1] + (l[12] < 60000000 and l[12] or 60000000)
 if l[9] == 1 then l[18] = min(l[18], once[1] + 10000000) end
 cfg[1] = cfg[1] < l[18] and cfg[1] or l[18]
 l[29] = {nil,nil,nil,nil}
 for i = 0, n - 1 do l[29][i+1] = 0 end
 once[5] = once[5] + n
 F.pool_Pool_addLot(l)
end
F.pool_Pool_endOne = function(e, at) -- internal/pool/lotends.go:39
 local o = {e[2],e[6][at+1],((e[3] ~= 0) and 1 or 0),((e[4] ~= 0) and 1 or 0),((e[5] > 0) and 1 or 0),0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
 for limit = 0, 16 - 1 do o[limit+6] = -1 end
 for limit = 0, e[5] - 1 do o[limit+6] = e[7][(at * e[5] + limit)+1] end
 return F.pool_Pool_FastDone(o)
end
F.pool_Pool_answerLot = function(l, e, from, to) -- internal/pool/lotends.go:51
 local usual = true
 for limit = 0, l[13] - 1 do
  local i = (l[30][limit+1] + 2147483648) % 4294967296 - 2147483648
  if i ~= 0 then
   local s = F.pool_Pool_sumsOf(i, (S_insts[i] or ld(S_insts, i)))
   if s[5] ~= 4 and s[7] == 0 and l[31][limit+1] ~= 0 and (s[5] ~= 1 or l[31][limit+1] ~= 1) then usual = false end
  end
 end
 if not usual then
  F.pool_Pool_spellOut(l)
  local i = from
  while i < to do
   F.pool_Pool_endOne(e, i)
   i = i + 1
  end
  return 
 end
 local n, i = 0, from
 while i < to do
  local k = e[6][i+1] - l[3]
  if l[29][k+1] == 0 then
   n = n + 1
   l[29][k+1] = once[1]
   F.pool_headerTime_add(once, 29, once[1] - l[17])
   for limit = 0, l[13] - 1 do
    local i = (l[30][limit+1] + 2147483648) % 4294967296 - 2147483648
    if i ~= 0 then
     local s = F.pool_Pool_sumsOf(i, (S_insts[i] or ld(S_insts, i)))
     if s[5] == 1 and s[7] == 0 and l[31][limit+1] == 1 then
      s[11] = s[11] + l[16][(k * l[13] + limit)+1]
      s[12] = s[12] + l[16][(k * l[13] + limit)+1]
     end
    end
   end
  end
  i = i + 1
 end
 if n > 0 then F.pool_Pool_countAccepted(l[23], n) end
end
F.pool_Pool_closeLot = function(l, e, from, to) -- internal/pool/lotends.go:93
 if (cfg[50] ~= 0 and e[3] == 0) or (e[5] > 0 and (l[27] ~= 0 or e[5] > l[13])) then
  local i = from
  while i < to do
   if (cfg[50] ~= 0 and e[3] == 0 and l[29][(e[6][i+1] - l[3])+1] == 0) or F.pool_Pool_unasked(l, e, i) then
    return false
   end
   i = i + 1
  end
 end
 if e[3] ~= 0 then
  local answered, i = 0, from
  while i < to do
   if l[29][(e[6][i+1] - l[3])+1] == 0 then
    answered = answered + 1
    F.pool_headerTime_add(once, 29, once[1] - l[17])
   end
   i = i + 1
  end
  if answered > 0 then F.pool_Pool_countAccepted(l[23], answered) end
 end
 for limit = 0, l[13] - 1 do
  local i = (l[30][limit+1] + 2147483648) % 4294967296 - 2147483648
  if i ~= 0 then
   local in_ = S_insts[i] or ld(S_insts, i)
   local s = F.pool_Pool_sumsOf(i, in_)
   if s[5] == 4 then F.pool_sums_giveUp(s, l, e, limit, from, to)
   else F.pool_Pool_settleLot(l, e, limit, from, to, in_, s) end
  end
 end
 local n, s = to - from, S_sessions[l[20]] or ld(S_sessions, l[20])
 s[5] = s[5] - ((n + 2147483648) % 4294967296 - 2147483648)
 if l[9] == 2 then s[7] = s[7] - ((n + 2147483648) % 4294967296 - 2147483648) end
 s[3] = once[1]
 once[5] = once[5] - n
 F.pool_Pool_strikeLot(l, e, from, to)
 l[26] = l[26] - n
 if l[26] == 0 then F.pool_Pool_forgetLot(l) end
 return true
end
F.pool_Pool_spellOut = function(l) -- internal/pool/lotspell.go:17
 for k = 0, #l[15] - 1 do if l[29][k+1] ~= (-1) then F.pool_Pool_spell(l, k) end end
 F.pool_Pool_forgetLot(l)
end
F.pool_Pool_enterTally = function(t) -- internal/pool/tallies.go:88
 local rec, i = (S_crecs[t[1]] or ld(S_crecs, t[1])), 0
 if t[8] > 0 then
  rec[9], rec[2] = t[4], floor(t[14] / 2^(20)) % 4294967296
  if rec[12] == 0 then rec[12] = t[13] end
  rec[10] = rec[10] + t[8]
  rec[6] = rec[6] + t[9]
  rec[13], rec[4], rec[5] = t[14], t[10], rec[5] > t[11] and rec[5] or t[11]
  i = F.pool_Pool_periodOf(rec, t[2], t[3])
 else i = F.pool_Pool_periodIn(rec, t[2], t[3]) end
 if i ~= 0 then
  local pd = S_hperiods[i] or ld(S_hperiods, i)
  if t[8] > 0 then
   pd[5] = pd[5] + t[8]
   pd[6] = pd[6] + t[9]
   pd[9] = pd[9] > t[11] and pd[9] or t[11]
   pd[10] = pd[10] > t[12] and pd[10] or t[12]
  end
  for u = 0, 6 - 1 do if t[u+15] ~= 0 then pd[u+12] = max(pd[u+12] + t[u+15], 0) end end
 end
 for u = 0, 6 - 1 do t[u+15] = 0 end
 if t[2] ~= 0 then F.flat_Names_Drop(t[2]) end
 t[5], t[8], t[9] = 0, 0, 0
 if t[7] == 0 then F.pool_Pool_mark(t) end
end
F.pool_history_turn = function(now_) -- internal/pool/history.go:93
 local before = past[2]
 if now_ >= past[3] + 1000000 then
  past[3] = now_ - fmod(now_, 1000000)
  past[2] = ((now_ - fmod(now_, 60000000)) / 60000000) % 4294967296
 end
 return past[2] ~= before
end
F.pool_Pool_turnTallies = function() -- internal/pool/tallies.go:47
 F.pool_Pool_enterSome(cfg[2])
 T[9], T[8] = T[8], T[9]
 if #T[8] > 0 then T[8] = {} end
 cfg[2] = #T[9]
end
F.pool_Pool_enlist = function(t) -- internal/pool/tallies.go:36
 if t[6] == 0 then
  t[6] = 1
  local t1_ = T[8]
  t1_[#t1_+1] = t
 end
end
F.pool_wheel_nextStep = function(w, w_o) -- internal/pool/wheel.go:127
 local s = 0
 if w[w_o+4] > 0 then s = w[w_o+3] end
 if w[w_o+5] ~= 0 then
  local line = quo((S_tickets[w[w_o+5]] or ld(S_tickets, w[w_o+5]))[6], 100000)
  if s == 0 or line < s then s = line end
 end
 return s
end
F.pool_Pool_expireSlot = function(s) -- internal/pool/wheel.go:116
 local i = once.slots[fmod(s, 4096)+1]
 while i ~= 0 do
  local next_ = (S_tickets[i] or ld(S_tickets, i))[21]
  if (S_tickets[i] or ld(S_tickets, i))[6] <= once[1] then F.pool_Pool_expire(i) end
  i = next_
 end
end
F.pool_Pool_expire = function(t) -- internal/pool/lifecycle.go:326
 local tk = S_tickets[t] or ld(S_tickets, t)
 if tk[23] == 1 and tk[9] > 0 and tk[5] > once[1] then
  local kept = (S_sessions[tk[16]] or ld(S_sessions, tk[16]))[4]
  if kept > once[1] then
   F.pool_Pool_schedule(t, tk, kept < tk[5] and kept or tk[5])
   return 
  end
 end
 if tk[23] == 3 and tk[8] > once[1] then
  if tk[33] ~= 0 then
   once[9] = 1
   F.pool_Pool_dropLost(t, tk)
   return 
  end
  if tk[34] == 1 then
   local until_ = F.pool_Pool_aliveUntil(tk)
   if until_ > once[1] then
    F.pool_Pool_schedule(t, tk, until_ < tk[8] and until_ or tk[8])
    return 
   end
   F.pool_Pool_orphan(t, tk, false)
   return 
  end
 end
 once[9] = 1
 local t1_ = tk[23]
 if t1_ == 1 then
  local t2_ = T[2]
  t2_[#t2_+1] = copy_(tk, 0, 2)
  F.pool_Pool_leaveQueue(tk)
  F.pool_Pool_end(t, tk)
 elseif t1_ == 2 then
  local t3_ = T[2]
  t3_[#t3_+1] = copy_(tk, 0, 2)
  F.pool_Pool_giveBack(tk)
  F.pool_Pool_pausesLost(t, tk, false)
  F.pool_Pool_end(t, tk)
 elseif t1_ == 3 then
  if tk[27] == 0 and tk[33] == 0 then F.pool_Pool_pausesLost(t, tk, false) end
  F.pool_Pool_lapse(tk)
  F.pool_Pool_finish(t, tk)
 elseif t1_ == 4 then
  once[5] = once[5] + 1
  F.pool_Pool_lapse(tk)
  F.pool_Pool_finish(t, tk)
 end
end
F.pool_wheel_findNext = function(w, w_o) -- internal/pool/wheel.go:141
 w[w_o+3] = w[w_o+1] + 1
 local n = 0
 while w[w_o+4] > 0 and n < 4096 do
  local i = w.slots[fmod(w[w_o+3], 4096)+1]
  if i ~= 0 then return end
  w[w_o+3] = w[w_o+3] + 1
  n = n + 1
 end
end
F.pool_Pool_sweepSome = function(n) -- internal/pool/insts.go:326
 for t1_ = 0, n - 1 do
  once[22] = once[22] + 1
  if once[22] >= slabEnd(S_insts) then
   once[22] = 0
   break
  end
  if (S_insts[once[22]] or ld(S_insts, once[22]))[12] ~= 0 and F.pool_Pool_spare(once[22]) then
   F.pool_Pool_dropInst(once[22])
  end
 end
 F.pool_Pool_burySome(n)
 F.pool_callers_sweep(n, once[1], cfg[49])
 F.pool_Pool_sweepSessions(n)
end
F.pool_member_silentFrom = function(m) return quo(m[3] + 3000000, 250000) * 250000 end -- internal/pool/members.go:39
F.pool_Pool_unlink = function(i) -- internal/pool/members.go:203
 local m = S_members[i] or ld(S_members, i)
 if m[7] ~= 0 then
  local t1_ = (S_members[m[7]] or ld(S_members, m[7]))
  t1_[8] = m[8]
 elseif m[2] ~= 0 then once[151] = m[8]
 else once[149] = m[8] end
 if m[8] ~= 0 then
  local t2_ = (S_members[m[8]] or ld(S_members, m[8]))
  t2_[7] = m[7]
 elseif m[2] == 0 then once[150] = m[7] end
 if m[2] == 0 then once[152] = once[152] - 1 end
 m[7], m[8] = 0, 0
end
F.pool_Pool_weigh = function(at) -- internal/pool/members.go:262
 local sums = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
 once[156], once[154] = 0, 0
 local i = once[151]
 while i ~= 0 do
  local m = S_members[i] or ld(S_members, i)
  local next_, over = m[8], F.pool_Pool_freeAt(at, m[4])
  for k = 0, cfg[4] - 1 do
   local after = F.pool_Pool_lingers(k)
   if after >= 0 and not F.pool_Pool_freeAt(at, m[4] + after) then
    over = false
    if m[5] > 0 then sums[k+1] = sums[k+1] + quo(4503599627370496 + m[5] - 1, m[5]) end
   end
  end
  if over then F.pool_Pool_dropMember(i)
  else once[154] = once[154] + F.pool_partOf(m[5]) end
  i = next_
 end
 for k = 0, cfg[4] - 1 do
  local part = min(quo(sums[k+1] + 1099511627776 - 1, 1099511627776), 4096)
  if part ~= once[k+158] then F.pool_Pool_withhold(k, at, part) end
 end
 F.pool_Pool_scheduleWithheld()
end
F.pause_State_Allow = function(g, t) -- internal/pause/pause.go:107
 F.pause_State_pass(g, t)
 local t1_ = g[1]
 if t1_ == 1 then return {((t >= g[9]) and 1 or 0),1,g[2],g[9] < g[2] and g[9] or g[2]}
 elseif t1_ == 2 then
  if g[6] ~= 0 then return F.pause_until(2, g[8] + 2000000) end
  local v = F.pause_until(2, g[9])
  v[1] = (t >= g[9]) and 1 or 0
  return copy_(v, 0, 4)
 elseif t1_ == 3 then
  local v = F.pause_until(3, F.pause_ramp_next(g, 10))
  v[1] = (t >= v[4]) and 1 or 0
  return copy_(v, 0, 4)
 end
 return {1,0,0,0}
end
F.pool_pauseRec_stale = function(g, t) -- internal/pool/pauses.go:33
 return (g[1] == 0 and g[4] == 0 and g[5] == 0 and t - (g[3] > g[2] and g[3] or g[2]) >= 600000000) or (g[35] ~= 0 and (g[1] ~= 1 and g[6] == 0 and t - max(g[3], g[2], g[13]) >= 3600000000))
end
F.pool_Pool_rampStays = function(g) -- internal/pool/ramps.go:47
 if not (g[11] ~= 0) then return false end
 local who = {0,0,g[36],0,g[37]}
 for i = 0, cfg[4] - 1 do
  repeat
   local per = (S_limits[i+1] or ld(S_limits, i+1))[7]
   local scope, _, _ = F.pool_gateScope(per, g[36], g[37])
   if not F.pool_Pool_ramps(i) or scope ~= g[35] then break end
   local at = F.pool_Pool_findInst(i, (F.pool_scoped(who, 0, per)), 0)
   if at ~= 0 and (S_insts[at] or ld(S_insts, at))[1] == 0 then return true end
  until true
 end
 return false
end
F.pool_Pool_dropPause = function(i) -- internal/pool/pauses.go:95
 local g = S_gates[i] or ld(S_gates, i)
 if g[40] ~= 0 then
  local t1_ = (S_gates[g[40]] or ld(S_gates, g[40]))
  t1_[41] = g[41]
 else once[26] = g[41] end
 if g[41] ~= 0 then
  local t2_ = (S_gates[g[41]] or ld(S_gates, g[41]))
  t2_[40] = g[40]
 end
 if g[36] ~= 0 then F.flat_Names_Drop(g[36]) end
 if g[37] ~= 0 then F.flat_Names_Drop(g[37]) end
 if g[38] ~= 0 then F.flat_Names_Drop(g[38]) end
 if g[39] ~= 0 then F.flat_Names_Drop(g[39]) end
 slabFree(S_gates, i)
end
F.pool_Pool_acquire = function(i) -- internal/pool/acquire.go:9
 local op = T[1][i+1]
 if not F.pool_Pool_valid(op) then
  F.pool_refuse(op, 9, 0)
  return 
 end
 if not F.pool_Pool_present(op) then return end
 local t, tk = F.pool_Pool_newTicket(op)
 local limit, fits = F.pool_Pool_want(tk, op[13], op[12] ~= 0)
 if limit >= 0 then
  F.pool_Pool_end(t, tk)
  F.pool_Pool_refuseTooLarge(op, limit)
  return 
 end
 local open = once[26] == 0 or (F.pool_Pool_pausesAllow(tk[12], tk[14]))[1] ~= 0
 if op[12] ~= 0 or (fits and counts[3] == 0 and open) then
  F.pool_Pool_grant(t, tk, open)
  F.pool_Pool_hold(t, tk, op)
  return 
 end
 tk[29] = (counts[3] >= cfg[51]) and 1 or 0
 F.pool_Pool_enqueue(t, i, false)
end
F.pool_Pool_poll = function(op) -- internal/pool/lifecycle.go:10
 if op[3] == 0 and op[15] > 0 then
  F.pool_Pool_keep(op)
  return 
 end
 local t, tk = F.pool_Pool_lookup(op)
 if t == 0 then return end
 local t1_ = tk[23]
 if t1_ == 1 then
  op[31], once[8] = 2, 1
  if tk[9] > 0 then F.pool_Pool_scheduleWait(t, tk) end
 elseif t1_ == 2 then F.pool_Pool_hold(t, tk, op)
 elseif t1_ == 3 then
  if op[16] > 0 and op[16] <= 86400000000000 then
   tk[7] = quo(op[16], 1000)
   if tk[33] == 0 then F.pool_Pool_live(t, tk) end
  end
  F.pool_ticket_report(tk, op)
 elseif t1_ == 4 then op[31] = 4 end
end
F.pool_Pool_touched = function(op) -- internal/pool/members.go:75
 if op[25] < 0 or op[16] < 0 or op[16] > 86400000000000 or op[26] < 0 then
  F.pool_refuse(op, 9, 0)
  return 
 end
 if op[24] ~= 0 then
  F.pool_Pool_leaves(op)
  return 
 end
 if op[26] ~= 0 and once[1] > op[26] then
  F.pool_refuse(op, 7, 0)
  return 
 end
 local at = F.pool_Pool_findSession(op[2])
 if (at == 0 or (S_sessions[at] or ld(S_sessions, at))[8] == 0) and slabLen(S_members) >= 4096 then
  F.pool_refuse(op, 8, 0)
  return 
 end
 local s = F.pool_Pool_sessionOf(op[2])
 local i = s[8]
 if i == 0 then
  i = slabNew(S_members)
  s[8] = i
  local t1_ = (S_members[i] or ld(S_members, i))
  t1_[1] = once[27]
 else F.pool_Pool_unlink(i) end
 local m = S_members[i] or ld(S_members, i)
 local back = m[2] ~= 0
 m[2], m[3] = 0, once[1]
 m[4] = once[1] + quo(op[16], 1000)
 if op[16] == 0 then
  m[4] = once[1] + cfg[49]
  if cfg[49] == 0 then m[4] = once[1] + quo(300000000000, 1000) end
 end
 F.pool_Pool_link(i)
 if back then F.pool_Pool_weigh(once[1])
 else F.pool_Pool_scheduleWithheld() end
 F.pool_Pool_promise(m, op[25])
 op[31], op[42] = 1, m[6]
end
F.pool_Pool_cancel = function(op) -- internal/pool/lifecycle.go:69
 local t, tk = F.pool_Pool_lookup(op)
 if t == 0 then return end
 op[31] = 4
 local t1_ = tk[23]
 if t1_ == 1 then
  F.pool_Pool_leaveQueue(tk)
  F.pool_Pool_end(t, tk)
 elseif t1_ == 2 or t1_ == 3 then
  if tk[27] ~= 0 then
   F.pool_Pool_finish(t, tk)
   return 
  end
  F.pool_Pool_giveBack(tk)
  F.pool_Pool_pausesLost(t, tk, true)
  F.pool_Pool_end(t, tk)
 end
end
F.pool_Pool_renew = function(i) -- internal/pool/lifecycle.go:109
 local op = T[1][i+1]
 local t, tk = F.pool_Pool_lookup(op)
 if t == 0 then return end
 if tk[23] == 1 or tk[23] == 4 or tk[27] ~= 0 then
  F.pool_Pool_poll(op)
  return 
 end
 F.pool_Pool_giveBack(tk)
 F.pool_Pool_pausesLost(t, tk, true)
 tk[30], tk[33] = 0, 0
 tk[3] = tk[3] + (once[1] - tk[4])
 if op[16] > 0 and op[16] <= 86400000000000 then tk[7] = quo(op[16], 1000) end
 if F.pool_Pool_fits(tk) and (F.pool_Pool_pausesAllow(tk[12], tk[14]))[1] ~= 0 then
  F.pool_Pool_grant(t, tk, true)
  F.pool_Pool_hold(t, tk, op)
  return 
 end
 F.pool_wheel_remove(once, 133, tk)
 tk[5] = 9007199254740992
 if op[14] >= 0 then tk[5] = once[1] + quo(op[14], 1000) end
 F.pool_Pool_enqueue(t, i, true)
end
F.pool_Pool_answer = function(op) -- internal/pool/lifecycle.go:141
 local t, tk = F.pool_Pool_lookup(op)
 if t == 0 then return end
 if tk[23] == 1 or tk[23] == 4 then
  F.pool_refuse(op, 9, 0)
  return 
 end
 op[31] = 1
 if tk[27] ~= 0 then return end
 tk[27] = 1
 F.pool_headerTime_add(once, 29, once[1] - tk[4])
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if (S_defs[c[c_o+5]+1] or ld(S_defs, c[c_o+5]+1))[3] == 0 then
   local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
   F.meter_Meter_Bind(in_, d, r, once[1], c, c_o)
   F.pool_Pool_changed(c, c_o)
  end
 end
 F.pool_Pool_judged(tk, op[18])
 F.pool_Pool_served(op, tk[14])
 F.pool_Pool_countAnswer(tk[12], op)
 F.pool_Pool_learn(op, tk, 9, tk[4], tk)
 if op[12] == 0 and F.pool_Pool_judge(op, tk, 9, tk[4], t) then F.pool_Pool_unexplained(tk, band(op[20], 20)) end
end
F.pool_Pool_close = function(op) -- internal/pool/lifecycle.go:174
 local t, tk = F.pool_Pool_lookup(op)
 if t == 0 then return end
 if tk[23] == 1 then
  F.pool_Pool_leaveQueue(tk)
  F.pool_Pool_end(t, tk)
  op[31] = 4
  return 
 end
 op[31] = 4
 if tk[23] == 4 then return end
 if tk[27] ~= 0 or op[24] == 0 then F.pool_Pool_settle(tk, op[13]) end
 if tk[27] == 0 then
  F.pool_Pool_pausesLost(t, tk, false)
  if op[24] ~= 0 or F.pool_Pool_strictly(tk) then
   F.pool_Pool_spend(t, tk)
   return 
  end
 end
 F.pool_Pool_finish(t, tk)
end
F.pool_Pool_observe = function(op) -- internal/pool/learn.go:10
 local s = F.pool_Pool_sessionOf(op[2])
 if op[3] == 0 then s[2] = s[2] + 1
 elseif op[3] <= s[2] then
  op[31] = 4
  return 
 else s[2] = op[3] end
 F.pool_Pool_withNames(op, function(who, who_o)
  F.pool_Pool_served(op, who[who_o+5])
  F.pool_Pool_countAnswer(who[who_o+3], op)
  F.pool_Pool_learn(op, who, who_o, once[1], nil)
  if op[12] == 0 then
   F.pool_Pool_judge(op, who, who_o, F.pool_Pool_since(op[20], who, who_o), 0)
   if op[18] == 2 then F.pool_Pool_unbrief(who, who_o) end
  end
  if op[18] == 2 or op[18] == 4 then
   sum[7] = sum[7] + 1
   once[29] = once[1]
   F.pool_history_refused(once[1])
  end
 end)
 op[31] = 4
end
F.pool_Pool_pause = function(op) -- internal/pool/pauses.go:269
 if op[19] <= 0 then
  F.pool_refuse(op, 9, 0)
  return 
 end
 if op[23] == "" then op[23] = "paused by hand" end
 F.pool_Pool_withNames(op, function(who, who_o)
  local g = S_gates[F.pool_Pool_pauseOf(op[20], who[who_o+3], who[who_o+5])] or ld(S_gates, F.pool_Pool_pauseOf(op[20], who[who_o+3], who[who_o+5]))
  local wait = quo(op[19], 1000)
  if (F.pause_State_Allow(g, once[1]))[2] ~= 1 or g[2] < once[1] + wait then F.pool_Pool_setCause(g, op, 0) end
  F.pause_State_Pause(g, once[1], wait)
 end)
 op[31] = 4
end
F.pool_Pool_resume = function(op) -- internal/pool/pauses.go:289
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if g[35] ~= 0 or not (once[148] ~= 0 and once[1] - once[148] < 3000000) then F.pause_State_Resume(g, once[1]) end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
 op[31] = 4
end
F.pool_Pool_heartbeat = function(op) -- internal/pool/leases.go:74
 if cfg[49] == 0 or not F.pool_Pool_validMember(op) then
  F.pool_refuse(op, 9, 0)
  return 
 end
 if slabLen(S_leases) >= 131072 then F.pool_Pool_bury() end
 F.pool_Pool_burySome(2)
 local agent, user = F.flat_Names_Hold(op[4]), F.flat_Names_Hold(op[5])
 local caller = F.pool_callers_of(agent)
 local rec = S_crecs[caller] or ld(S_crecs, caller)
 if rec[3] ~= 0 then F.pool_Pool_buryOne(rec[3]) end
 local code, at, free = 0, 0, F.pool_Pool_slotFree(user, rec[3], op[29])
 if free > once[1] then code, at = 15, free
 elseif rec[3] == 0 and slabLen(S_leases) >= 131072 then code = 8 end
 if code ~= 0 then
  if user ~= 0 then F.flat_Names_Drop(user) end
  if agent ~= 0 then F.flat_Names_Drop(agent) end
  F.pool_Pool_dropCaller(caller)
  F.pool_refuse(op, code, at)
  return 
 end
 local moved = rec[9] == 255
 if rec[3] == 0 then
  rec[3] = slabNew(S_leases)
  local t1_ = (S_leases[rec[3]] or ld(S_leases, rec[3]))
  clear_(t1_, 0, 27)
  t1_[1] = agent ~= 0 and F.flat_Names_Keep(agent) or 0
  t1_[4] = once[1]
  t1_[27] = op[9]
  moved = moved or (rec[2] > 0 and rec[9] ~= op[9])
 end
 local l = S_leases[rec[3]] or ld(S_leases, rec[3])
 if agent ~= 0 then F.flat_Names_Drop(agent) end
 if l[2] ~= 0 then F.flat_Names_Drop(l[2]) end
 local old = l[3]
 l[2], l[3] = user, F.flat_Names_Hold(op[27])
 F.pool_lease_heldBy(l, op[2], l[3] == old and l[5] > once[1])
 if old ~= 0 then F.flat_Names_Drop(old) end
 F.pool_Pool_setWaits(l, op[28])
 moved = moved or l[27] ~= op[9]
 l[27], rec[9] = op[9], op[9]
 l[5], l[6] = once[1] + cfg[49], 0
 if op[16] > 0 then l[5] = once[1] + quo(op[16], 1000) end
 if op[29] > 0 then l[6] = once[1] + quo(op[30], 1000) end
 if moved then F.pool_Pool_countLiving() end
 once[op[9]+11] = once[op[9]+11] > l[5] and once[op[9]+11] or l[5]
 op[31] = 1
end
F.pool_Pool_leave = function(op) -- internal/pool/leases.go:201
 op[31] = 4
 if op[4] == "" or #op[4] > 256 then return end
 local agent = F.flat_Names_Hold(op[4])
 local i = (S_names[agent] or ld(S_names, agent))[2]
 if i ~= 0 then
  local rec = S_crecs[i] or ld(S_crecs, i)
  if rec[3] == 0 or not F.pool_Pool_handOn((S_leases[rec[3]] or ld(S_leases, rec[3])), op) then
   rec[9] = 255
   if rec[3] ~= 0 then F.pool_Pool_dropLease(rec[3]) end
   F.pool_Pool_countLiving()
  end
 end
 if agent ~= 0 then F.flat_Names_Drop(agent) end
 if i ~= 0 then F.pool_Pool_dropCaller(i) end
end
F.pool_Pool_launch = function(op) -- internal/pool/leases.go:296
 if op[14] < 0 or op[14] > 86400000000000 then
  F.pool_refuse(op, 9, 0)
  return 
 end
 op[31] = 1
 op[40] = F.policy_Scatter_Next(once, 18, once[1], quo(op[14], 1000))
end
F.pool_Pool_forget = function(op) -- internal/pool/forget.go:23
 op[31] = 4
 if once[148] ~= 0 and once[1] - once[148] < 10000000 then return end
 once[148] = once[1]
 if op[23] == "" then op[23] = "the store lost its memory" end
 local g = S_gates[F.pool_Pool_pauseOf(0, 0, 0)] or ld(S_gates, F.pool_Pool_pauseOf(0, 0, 0))
 if (F.pause_State_Allow(g, once[1]))[2] ~= 1 or g[2] < once[1] + 3000000 then F.pool_Pool_setCause(g, op, 0) end
 F.pause_State_Pause(g, once[1], 3000000)
 local i = 1
 while i < slabEnd(S_insts) do
  if (S_insts[i] or ld(S_insts, i))[12] ~= 0 then F.pool_Pool_lose(i) end
  i = i + 1
 end
end
F.pool_Pool_gone = function(op) -- internal/pool/sessions.go:101
 op[31] = 4
 local proven, from = op[17] ~= 1, op[2]
 local to = from + (op[3] > 1 and op[3] or 1)
 do
  local i = 1
  while i < slabEnd(S_tickets) do
   local tk = S_tickets[i] or ld(S_tickets, i)
   if not (tk[23] ~= 3 or tk[33] ~= 0 or tk[34] == 0) then
    local id = (S_sessions[tk[16]] or ld(S_sessions, tk[16]))[1]
    if id >= from and id < to then F.pool_Pool_orphan(i, tk, proven) end
   end
   i = i + 1
  end
 end
 if not proven then return end
 local weigh, i = false, 1
 while i < slabEnd(S_sessions) do
  local s = S_sessions[i] or ld(S_sessions, i)
  if s[1] >= from and s[1] < to and s[8] ~= 0 then weigh = F.pool_Pool_died(s[8]) or weigh end
  i = i + 1
 end
 if weigh then F.pool_Pool_weigh(once[1]) end
 F.pool_Pool_scheduleWithheld()
end
F.pool_refuse = function(op, code, at) -- internal/pool/pool.go:446
 op[31] = 3
 op[37], op[38], op[39], op[40] = code, 0, "", at
end
F.order_Queue_Wake = function(t) -- internal/order/park.go:45
 while counts[15] ~= 0 do
  local n = F.flat_Tree_Min(counts[15])
  if (F.flat_Tree_KeyOf(n))[1] > t then return end
  local f = ((S_tnodes[n] or ld(S_tnodes, n))[3])
  local on = (S_qspots[(S_qflows[f] or ld(S_qflows, f))[16]] or ld(S_qspots, (S_qflows[f] or ld(S_qflows, f))[16]))[1]
  F.order_Queue_leave(f)
  F.order_Queue_enter(f)
  F.order_Queue_Unpark(on)
 end
end
F.pool_Pool_serveOne = function() -- internal/pool/serve.go:65
 once[2] = 0
 once[25] = once[25] + 1
 local again, heads = false, F.order_Queue_Heads((F.pool_Pool_strict()), cfg[52] ~= 0)
 local highest, t2_ = F.pool_Pool_findRival(heads), heads
 for i = 0, #t2_ - 1 do
  repeat
   local h = copy_(t2_[i+1], 0, 6)
   if i == highest then once[10] = 0 end
   if ((S_qlanes[h[2]] or ld(S_qlanes, h[2]))[24] == once[25]) then break end
   local t = F.order_Queue_Ticket(h[1])
   local tk = S_tickets[t] or ld(S_tickets, t)
   local v = F.pool_Pool_pausesAllow(tk[12], tk[14])
   if v[1] == 0 then
    F.pool_Pool_wakeFor(t, v[4])
    F.order_Queue_Held(h)
    again = F.pool_Pool_passOn(tk) or again
    break
   end
   local limit = F.pool_Pool_tooBig(tk)
   if limit >= 0 then
    F.pool_Pool_dismiss(t, tk, limit)
    return true
   end
   do
    local on, at = F.pool_Pool_lacksOwn(tk)
    if on ~= 0 then
     F.order_Queue_Park(h[1], on, at)
     tk[28] = 1
     return true
    end
   end
   do
    local at = F.pool_Pool_keptFromAny(tk)
    if at ~= 0 then
     F.pool_Pool_wakeFor(t, min(at, once[1] + 10000000))
     F.order_Queue_Held(h)
     again = F.pool_Pool_passOn(tk) or again
     break
    end
   end
   local at = F.pool_Pool_lacksShared(tk)
   if at ~= 0 then
    if cfg[52] ~= 0 then at = min(at, once[1] + 10000000) end
    F.pool_Pool_wakeFor(t, at)
    F.pool_Pool_claim(tk)
    F.order_Queue_Close(h, once[25])
    F.pool_Pool_limitsBind(tk, 9)
    again = F.pool_Pool_passOn(tk) or again
    break
   end
   F.pool_Pool_admit(t)
   return true
  until true
 end
 return again
end
F.order_Queue_NextWake = function() -- internal/order/park.go:71
 if counts[15] == 0 then return 0, false end
 return (F.flat_Tree_KeyOf(F.flat_Tree_Min(counts[15])))[1], true
end
F.pool_Pool_wakeAt = function(t) -- internal/pool/serve.go:36
 if t < 9007199254740992 and (once[2] == 0 or t < once[2]) then once[2] = max(t, once[1] + 1) end
end
F.pool_wheel_nextDue = function(w, w_o) -- internal/pool/wheel.go:153
 local s = F.pool_wheel_nextStep(w, w_o)
 if s == 0 then return 0 end
 return max(s, w[w_o+1] + 1) * 100000
end
F.pool_Pool_conclude = function(op) -- internal/pool/pool.go:406
 local r, r_o = op, 30
 if once[26] ~= 0 then r[r_o+11] = (F.pool_Pool_holding(op, 1)) and 1 or 0 end
 if r[r_o+1] ~= 2 then return false end
 local t, tk = F.pool_Pool_lookup(op)
 if t == 0 then return false end
 if tk[23] ~= 1 then
  T[2] = without(T[2], function(id, id_o)
   return same(id, id_o, op, 1, 2)
  end)
  F.pool_Pool_poll(op)
  return false
 end
 tk[18] = 0
 local full = tk[29] ~= 0 and op[14] ~= 0 and counts[3] > cfg[51]
 tk[29] = 0
 local asks = op[1] == 0 or op[1] == 3
 if op[1] == 0 and op[14] < 0 and not full then return false end
 local reason, least = F.pool_Pool_why(t)
 move(r, r_o+6, reason, 0, 4)
 if full then r[r_o+7], r[r_o+8] = 8, r[r_o+7]
 elseif not asks or op[14] < 0 or (op[14] > 0 and least <= tk[5]) then return false
 elseif op[14] > 0 then r[r_o+7], r[r_o+8] = 7, r[r_o+7] end
 r[r_o+1] = 3
 F.pool_Pool_leaveQueue(tk)
 F.pool_Pool_end(t, tk)
 return true
end
F.pool_Pool_defOf = function(in_) -- internal/pool/model.go:29
 if in_[28] == 0 then return (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) end
 local m = S_models[in_[28]] or ld(S_models, in_[28])
 if m[24] == 0 then return (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) end
 if m[9] ~= once[in_[11]+158] then m[9] = once[in_[11]+158] end
 return m
end
F.policy_Pace_Take = function(p, t, amount, size, window) -- internal/policy/pace.go:38
 if p[2] ~= t then p[2], p[3], p[4] = t, p[1], 0 end
 p[4] = p[4] + amount
 if p[4] > 0 then p[1] = min((p[3] > t and p[3] or t) + (ceil((p[4] * window) / size)), t + window)
 else p[1] = p[3] - F.policy_Gap(-p[4], size, window) end
end
F.meter_Meter_TakeAll = function(m, d, r, t, mark, amount, mode) -- internal/meter/charge.go:40
 if d[1] == 3 then m[4] = m[4] + amount
 elseif mode == 0 then F.meter_Meter_add(m, d, r, t, amount)
 elseif mode == 2 then
  local c = {amount,0,0}
  F.meter_Meter_chargeAt(m, d, r, c, 0, mark)
 else F.meter_Meter_hold(m, d, amount) end
end
F.meter_Meter_SettleAll = function(m, d, r, t, gone, adds, backs) -- internal/meter/charge.go:57
 m[4] = m[4] - gone
 if d[1] == 3 then
 elseif (d[1] == 2 and m[8] ~= 0) then
  m[5] = m[5] + (adds - backs - gone)
  if t >= m[7] then m[6] = m[6] + (adds - backs) end
 elseif d[1] == 0 then
  if adds > 0 then F.meter_Meter_add(m, d, r, t, adds) end
  if backs > 0 then
   F.meter_Ring_lower(r, t, t, backs)
   m[5] = m[5] - backs
  end
 else F.meter_Meter_add(m, d, r, t, adds - backs) end
end
F.pool_names_sole = function(n, n_o, per) -- internal/pool/insts.go:223
 local t1_ = per
 if t1_ == 1 then return n[n_o+1]
 elseif t1_ == 4 then return n[n_o+3]
 elseif t1_ == 2 then return n[n_o+2]
 elseif t1_ == 8 then return n[n_o+4]
 elseif t1_ == 16 then return n[n_o+5] end
 return 0
end
F.pool_Pool_ownOf = function(limit, name) -- internal/pool/insts.go:214
 local i = (S_names[name] or ld(S_names, name))[3]
 while i ~= 0 and (S_insts[i] or ld(S_insts, i))[11] ~= (limit % 256) do i = (S_insts[i] or ld(S_insts, i))[19] end
 return i
end
F.pool_Pool_findInst = function(limit, scope, scope_o) -- internal/pool/insts.go:200
 local name = F.pool_names_sole(scope, scope_o, (S_limits[limit+1] or ld(S_limits, limit+1))[7])
 if name ~= 0 then return F.pool_Pool_ownOf(limit, name) end
 local h = F.pool_scopeHash(limit, scope, scope_o)
 local i, n = indexSeek(X.instIx, h, 0)
 while i ~= 0 do
  local in_ = S_insts[i] or ld(S_insts, i)
  if in_[11] == (limit % 256) and same(in_, 22, scope, scope_o, 5) then return i end
  i, n = indexSeek(X.instIx, h, n)
 end
 return 0
end
F.pool_scoped = function(who, who_o, per) -- internal/pool/insts.go:240
 if per == 1 then return {who[who_o+1],0,0,0,0} end
 local s = {0,0,0,0,0}
 if band(per, 1) ~= 0 then s[1] = who[who_o+1] end
 if band(per, 2) ~= 0 then s[2] = who[who_o+2] end
 if band(per, 4) ~= 0 then s[3] = who[who_o+3] end
 if band(per, 8) ~= 0 then s[4] = who[who_o+4] end
 if band(per, 16) ~= 0 then s[5] = who[who_o+5] end
 return copy_(s, 0, 5)
end
F.pool_Pool_sumsOf = function(i, in_) -- internal/pool/fast.go:80
 if in_[29] == once[7] then return T[6][in_[30]+1] end
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 F.meter_Meter_Advance(in_, d, r, once[1])
 in_[29], in_[30] = once[7], #T[6]
 local t1_ = T[6]
 t1_[#t1_+1] = {i,F.meter_Meter_Room(in_, d, r),once[1],1,1,0,((d[3] ~= 0) and 1 or 0),cfg[in_[11]+33],0,0,0,0,0,0}
 local s = T[6][in_[30]+1]
 if d[1] == 3 then s[5] = 4
 elseif (d[1] == 0 and in_[10] > once[1]) then s[5], s[2] = 0, -1
 elseif (d[2] == 2 and d[3] == 0) then s[5], s[4] = 2, 0
 elseif (d[2] == 0 and d[3] == 0 and (once[29+18] > 0 and d[2] == 0 and once[29+18] > (2 * ((r == nil or r[4] == 0) and d[6] or r[4])))) then
  s[5], s[4], s[3] = 3, 2, once[1] + ((r == nil or r[4] == 0) and d[6] or r[4])
 end
 if band(cfg[52], (1 * 2^(in_[11]))) ~= 0 then
  s[6] = 2
  if d[1] == 1 and cfg[32] == 0 then
   s[6] = 0
   if in_[1] > 0 and cfg[28] ~= 0 then s[6] = 1 end
  end
 end
 return s
end
F.pool_Pool_paced = function(s, in_, d, amount) -- internal/pool/fast.go:158
 if not (cfg[49] > 0 and (once[1] < once[0+11] or F.order_Queue_Waiting(0 + 1) > 0 or (0 == 0 and (counts[0+5]) > 0))) then
  return false
 end
 local pace = S_paces[in_[18]] or ld(S_paces, in_[18])
 if s[14] ~= 0 then
  F.policy_Pace_Take(pace, once[1], s[14], in_[1], d[4])
  s[14] = 0
 end
 return once[10] ~= 0 or not F.policy_Pace_AllowsAll(pace, once[1], amount, in_[1], d[4])
end
F.meter_Meter_Open = function(m, d, r) -- internal/meter/meter.go:80
 return ((r == nil or r[5] == 0) and m[1] or F.meter_Meter_less(m, r[5])) - ((d[9] == 0) and 0 or quo(mul(m[1], d[9]), 4096))
end
F.policy_Part = function(amount, thousandths) -- internal/policy/floor.go:41
 return mul((amount - fmod(amount, 1000)) / 1000, thousandths) + quo(mul(fmod(amount, 1000), thousandths), 1000)
end
F.pool_Pool_safeOf = function(in_, class) -- internal/pool/stock.go:57
 if (class > 0 and cfg[28] ~= 0 and (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))[13] ~= 0) then return 0 end
 return cfg[class+53]
end
F.pool_Pool_stockOf = function(in_) -- internal/pool/stock.go:72
 local st = S_stocks[in_[18]] or ld(S_stocks, in_[18])
 if in_[8] == 0 or st[1] == in_[10] then return st end
 local sum_ = 0
 for t1_ = 0, 8 - 1 do
  local used = st[t1_+2]
  sum_ = sum_ + used
 end
 if st[1] ~= 0 or sum_ > in_[5] then clear_(st, 1, 8) end
 st[1] = in_[10]
 return st
end
F.policy_Breaker_Idle = function(b, b_o) return b[b_o+1] == 0 and b[b_o+9] == 0 end -- internal/policy/breaker.go:201
F.pool_Pool_binds = function(in_, d) -- internal/pool/stock.go:290
 if cfg[29] == 0 then return false
 elseif cfg[32] ~= 0 then return true end
 return d[1] == 2 and (cfg[29] > 0 and (cfg[32] ~= 0 or d[4] >= quo(600000000000, 1000))) and (((d[1] == 2 and in_[8] ~= 0)) or cfg[31] ~= 0)
end
F.pool_Pool_took = function(class, requests, amount, in_, d) -- internal/pool/stock.go:89
 if d[1] == 2 then
  local st = F.pool_Pool_stockOf(in_)
  st[class+2] = st[class+2] + amount
  if class > 0 and not (st[9+1] == 0 and st[9+9] == 0) then
   for t1_ = 0, requests - 1 do F.policy_Breaker_Sent(st, 9, once[1]) end
  end
 elseif (d[1] == 1 and class > 0 and in_[1] > 0 and cfg[28] ~= 0) then
  F.policy_Pace_Take((S_paces[in_[18]] or ld(S_paces, in_[18])), once[1], amount, in_[1], d[4])
 end
end
F.pool_caller_count = function(c, now_, second, n, retried) -- internal/pool/callers.go:57
 c[10] = c[10] + n
 c[6] = c[6] + retried
 if c[12] == 0 then c[12] = now_ end
 if c[13] < second then c[4] = 0 end
 c[13] = now_
 c[4] = c[4] + (n % 4294967296)
 c[5] = c[5] > c[4] and c[5] or c[4]
end
F.pool_Pool_tell = function(t, model) -- internal/pool/tallies.go:22
 if t[5] ~= 0 then F.pool_Pool_enterTally(t) end
 local rec = S_crecs[t[1]] or ld(S_crecs, t[1])
 if rec[2] + 57 < (floor(once[1] / 2^(20)) % 4294967296) then rec[2] = (floor(once[1] / 2^(20)) % 4294967296) end
 t[5], t[2], t[3] = 1, model ~= 0 and F.flat_Names_Keep(model) or 0, past[2]
 t[14], t[10], t[11], t[12] = rec[13], rec[4], 0, 0
 F.pool_Pool_enlist(t)
end
F.pool_Pool_sessionOf = function(id) -- internal/pool/sessions.go:37
 if once[27] ~= 0 then
  local s = S_sessions[once[27]] or ld(S_sessions, once[27])
  if s[1] == id and not (s[5] == 0 and s[8] == 0 and once[1] - s[3] >= 600000000) then
   s[3] = once[1]
   return s
  end
 end
 local i = F.pool_Pool_findSession(id)
 if i == 0 then
  i = slabNew(S_sessions)
  local t1_ = (S_sessions[i] or ld(S_sessions, i))
  t1_[1] = id
  indexAdd(X.sessIx, F.pool_sessionHash(id), i)
 end
 local s = S_sessions[i] or ld(S_sessions, i)
 if (s[5] == 0 and s[8] == 0 and once[1] - s[3] >= 600000000) then
  once[28] = once[28] > s[2] and once[28] or s[2]
  s[2] = 0
 end
 once[27], s[3] = i, once[1]
 return s
end
F.pool_Pool_FastDone = function(o) -- internal/pool/fast.go:192
 local t, tk = F.pool_Pool_find(o, 0)
 if t == 0 or tk[23] ~= 3 or tk[33] ~= 0 or tk[30] ~= 0 or tk[32] ~= 0 then return false end
 if o[4] ~= 0 and ((cfg[50] ~= 0 and tk[27] == 0 and o[3] == 0) or (o[5] ~= 0 and tk[25] < cfg[4] and F.pool_Pool_unstated(tk, o))) then
  return false
 end
 local answers = o[3] ~= 0 and tk[27] == 0
 if answers then
  tk[27] = 1
  F.pool_headerTime_add(once, 29, once[1] - tk[4])
  F.pool_Pool_countAccepted(tk[12], 1)
 end
 if o[4] == 0 then
  if answers then
   for k = 0, tk[25] - 1 do
    local c, c_o = tk, (k)*5+35
    local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
    local s = F.pool_Pool_sumsOf(c[c_o+4], in_)
    if s[7] == 0 then F.pool_Pool_bindFast(in_, s, c, c_o) end
   end
  end
  return true
 end
 local pd = nil
 if o[5] ~= 0 then pd = F.pool_Pool_noted(tk) end
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
  local s = F.pool_Pool_sumsOf(c[c_o+4], in_)
  s[9] = s[9] - 1
  local actual = c[c_o+1]
  if o[5] ~= 0 and o[c[c_o+5]+6] >= 0 and o[c[c_o+5]+6] <= 1099511627776 then actual = o[c[c_o+5]+6] end
  if s[5] == 1 and c[c_o+3] == 1 and actual <= c[c_o+1] then
   local less = c[c_o+1] - actual
   s[11] = s[11] + c[c_o+1]
   s[2] = s[2] + less
   if tk[27] ~= 0 and s[7] == 0 then
    s[12] = s[12] + c[c_o+1]
    s[13] = s[13] + less
   else s[12] = s[12] + actual end
   if less ~= 0 then
    if s[8] >= 0 and pd ~= nil then pd[s[8]+12] = max(pd[s[8]+12] - less, 0) end
    if s[6] ~= 0 then F.pool_Pool_keptLess(s, in_, tk[24], tk[4], less) end
   end
  else F.pool_Pool_closeFast(tk, in_, s, c, c_o, actual, pd) end
 end
 F.pool_Pool_endFast(t, tk)
 return true
end
F.pool_headerTime_add = function(h, h_o, d) -- internal/pool/header.go:18
 h[h_o+fmod(h[h_o+17], 16)+1] = d
 h[h_o+17] = h[h_o+17] + 1
end
F.pool_Pool_countAccepted = function(model, n) -- internal/pool/answers.go:78
 local a = F.pool_Pool_answersOf(model)
 a[3] = once[1]
 local t1_, t1_o = F.pool_answers_span(a, once[1])
 t1_[t1_o+2] = t1_[t1_o+2] + n
end
F.pool_Pool_unasked = function(l, e, i) -- internal/pool/lotends.go:141
 for limit = 0, e[5] - 1 do
  if e[7][(i * e[5] + limit)+1] > 0 and (limit >= l[13] or l[16][((e[6][i+1] - l[3]) * l[13] + limit)+1] == 0) then
   return true
  end
 end
 return false
end
F.pool_sums_giveUp = function(s, l, e, limit, from, to) -- internal/pool/lotends.go:151
 local i = from
 while i < to do
  local amount = l[16][((e[6][i+1] - l[3]) * l[13] + limit)+1]
  if amount ~= 0 then
   s[11] = s[11] + amount
   s[2] = s[2] + amount
   s[9] = s[9] - 1
  end
  i = i + 1
 end
end
F.pool_Pool_settleLot = function(l, e, limit, from, to, in_, s) -- internal/pool/lotends.go:162
 local usual = s[5] == 1 and l[31][limit+1] == 1
 local w, first, amounts, states, numbers, used, uw = l[13], l[3], l[16], l[29], e[6], e[7], e[5]
 local unit, bound, gone, less, refs, i = s[8], e[3] ~= 0 and s[7] == 0, 0, 0, 0, from
 while i < to do
  local k = numbers[i+1] - first
  local amount = amounts[(k * w + limit)+1]
  if amount ~= 0 then
   refs = refs + 1
   local actual = amount
   if limit < uw then
    local u = used[(i * uw + limit)+1]
    if u >= 0 then actual = u end
   end
   if usual and actual <= amount and states[k+1] == 0 then
    gone = gone + amount
    if actual ~= amount then
     less = less + (amount - actual)
     if unit >= 0 then F.pool_Pool_usedLess(l, k, unit, amount - actual) end
    end
   else
    F.pool_Pool_settleHeld(l, in_, s, gone, less, bound)
    gone, less = 0, 0
    F.pool_Pool_settleOdd(l, e, k, limit, in_, s, amount, actual)
   end
  end
  i = i + 1
 end
 F.pool_Pool_settleHeld(l, in_, s, gone, less, bound)
 s[9] = s[9] - refs
end
F.pool_Pool_forgetLot = function(l) -- internal/pool/lots.go:216
 F.pool_Pool_dropLot(l)
 if l[22] ~= 0 then F.flat_Names_Drop(l[22]) end
 if l[23] ~= 0 then F.flat_Names_Drop(l[23]) end
 if l[24] ~= 0 then F.flat_Names_Drop(l[24]) end
 if l[25] ~= 0 then F.flat_Names_Drop(l[25]) end
end
F.pool_Pool_spell = function(l, k) -- internal/pool/lotspell.go:27
 local i = slabNew(S_tickets)
 local tk = S_tickets[i] or ld(S_tickets, i)
 tk[1], tk[2] = l[2], l[3] + u64(k)
 tk[3], tk[4], tk[5] = l[17], l[17], 9007199254740992
 local wait = l[14][min(k, #l[14] - 1)+1]
 if wait >= 0 then tk[5] = l[17] + wait end
 tk[24], tk[34], tk[7], tk[9], tk[16], tk[23] = l[8], l[9], l[12], l[11], l[20], 3
 tk[26] = (l[10] ~= 0) and 1 or 0
 tk[27] = (l[29][k+1] > 0) and 1 or 0
 tk[10] = F.flat_Names_Hold(l[15][k+1])
 tk[11], tk[12] = l[22] ~= 0 and F.flat_Names_Keep(l[22]) or 0, l[23] ~= 0 and F.flat_Names_Keep(l[23]) or 0
 tk[13], tk[14] = l[24] ~= 0 and F.flat_Names_Keep(l[24]) or 0, l[25] ~= 0 and F.flat_Names_Keep(l[25]) or 0
 local t = T[7][l[28][k+1]+1]
 if t[5] ~= 0 then F.pool_Pool_enterTally(t) end
 tk[15] = t[1]
 tk[35] = F.pool_Pool_periodIn((S_crecs[t[1]] or ld(S_crecs, t[1])), l[23], l[19])
 tk[8] = l[17] + l[12]
 tk[6] = tk[8]
 if l[9] == 1 then tk[6] = min(tk[6], max(l[18], l[17] + 10000000)) end
 F.pool_wheel_add(once, 133, i, tk)
 F.pool_Pool_enter(i, tk, 0)
 local n = 0
 for limit = 0, l[13] - 1 do
  local amount = l[16][(k * l[13] + limit)+1]
  if amount ~= 0 then
   local c, c_o = tk, (n)*5+35
   c[c_o+1], c[c_o+2], c[c_o+3], c[c_o+4], c[c_o+5] = amount, l[32][limit+1], l[31][limit+1] % 256, (l[30][limit+1] + 2147483648) % 4294967296 - 2147483648, limit % 256
   if l[29][k+1] > 0 and c[c_o+3] == 1 and (S_defs[limit+1] or ld(S_defs, limit+1))[3] == 0 and (S_defs[limit+1] or ld(S_defs, limit+1))[1] ~= 3 then
    c[c_o+2], c[c_o+3] = l[29][k+1], 0
   end
   n = n + 1
  end
 end
 tk[25] = n % 256
end
F.pool_Pool_periodOf = function(rec, model, at) -- internal/pool/history.go:187
 local i, crowded = F.pool_Pool_findPeriod(rec, rec[8], model, at)
 if i == 0 and F.pool_history_full(at) then
  rec = sum
  rec[1] = once[113]
  i, crowded = F.pool_Pool_findPeriod(rec, rec[8], model, at)
 end
 if i ~= 0 then return i end
 if crowded then model = once[113] end
 i = F.pool_Pool_newPeriod()
 local t1_ = (S_hperiods[i] or ld(S_hperiods, i))
 t1_[1], t1_[2], t1_[3], t1_[4], t1_[5], t1_[6], t1_[7], t1_[8], t1_[9], t1_[10], t1_[11], t1_[12], t1_[13], t1_[14], t1_[15], t1_[16], t1_[17] = rec[1] ~= 0 and F.flat_Names_Keep(rec[1]) or 0, model ~= 0 and F.flat_Names_Keep(model) or 0, at, rec[8], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
 rec[8] = i % 65536
 return i
end
F.pool_Pool_periodIn = function(rec, model, at) -- internal/pool/history.go:208
 local i, _ = F.pool_Pool_findPeriod(rec, F.pool_Pool_until(rec, at), model, at)
 if i == 0 and sum[8] ~= 0 then
  local total = sum
  i = F.pool_Pool_findPeriod(total, F.pool_Pool_until(total, at), model, at)
 end
 return i
end
F.pool_Pool_schedule = function(i, t, due) -- internal/pool/ticket.go:149
 if t[6] ~= 0 then F.pool_wheel_remove(once, 133, t) end
 t[6] = due
 F.pool_wheel_add(once, 133, i, t)
end
F.pool_Pool_dropLost = function(t, tk) -- internal/pool/sessions.go:157
 local held = false
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, _ = F.pool_Pool_touchCharge(c, c_o)
  F.meter_Meter_Release(in_, d, c, c_o)
  F.pool_Pool_changed(c, c_o)
  held = held or c[c_o+3] == 1
 end
 once[5] = once[5] - 1
 if held then
  tk[23] = 4
  F.pool_Pool_schedule(t, tk, tk[8])
  return 
 end
 F.pool_Pool_end(t, tk)
end
F.pool_Pool_aliveUntil = function(tk) -- internal/pool/sessions.go:90
 local until_ = max((S_sessions[tk[16]] or ld(S_sessions, tk[16]))[4], once[4] + 10000000)
 if once[1] - once[3] > 6000000 then until_ = max(until_, once[1] + 6000000) end
 return until_
end
F.pool_Pool_orphan = function(t, tk, proven) -- internal/pool/sessions.go:141
 tk[33] = 1
 if tk[27] == 0 then F.pool_Pool_pausesLost(t, tk, false) end
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
  F.meter_Meter_Orphan(in_, d, r, once[1], c, c_o, proven)
  F.pool_Pool_changed(c, c_o)
 end
 once[9] = 1
 F.pool_Pool_schedule(t, tk, min(tk[8], once[1] + min(once[47] > 1000000 and once[47] or 1000000, 3000000)))
end
F.pool_Pool_leaveQueue = function(tk) -- internal/pool/acquire.go:52
 F.order_Queue_Remove(tk[17])
 F.pool_Pool_unqueue(tk)
 for k = 0, tk[25] - 1 do F.pool_Pool_changed(tk, (k)*5+35) end
end
F.pool_Pool_end = function(i, t) -- internal/pool/ticket.go:129
 F.pool_wheel_remove(once, 133, t)
 for k = 0, t[25] - 1 do
  local c, c_o = t, (k)*5+35
  if unscoped[c[c_o+5]][2] == nil then
   local t2_ = (S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4]))
   t2_[16] = t2_[16] - 1
  end
 end
 F.pool_Pool_dropNames(t, 9)
 F.pool_Pool_strikeOut(i, t, 0)
 local s = S_sessions[t[16]] or ld(S_sessions, t[16])
 s[5] = s[5] - 1
 if t[34] == 2 then s[7] = s[7] - 1 end
 s[3] = once[1]
 clear_(t, 0, 35)
 slabRecycle(S_tickets, i)
end
F.pool_Pool_giveBack = function(tk) -- internal/pool/lifecycle.go:91
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local amount, in_, d, r = c[c_o+1], F.pool_Pool_touchCharge(c, c_o)
  F.meter_Meter_Refund(in_, d, r, once[1], c, c_o)
  c[c_o+1] = amount
  if band(cfg[52], (1 * 2^(c[c_o+5]))) ~= 0 then F.pool_Pool_tookLess(tk[24], tk[4], in_, amount) end
  F.pool_Pool_changed(c, c_o)
 end
 once[5] = once[5] - 1
 F.pool_Pool_unsent(tk)
end
F.pool_Pool_pausesLost = function(t, tk, unsent) -- internal/pool/pauses.go:156
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if ((band(g[35], 4) == 0 or g[36] == tk[12]) and (band(g[35], 16) == 0 or g[37] == tk[14])) then
   F.pause_State_Lost(g, once[1], t, unsent)
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
end
F.pool_Pool_lapse = function(tk) -- internal/pool/lifecycle.go:375
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
  F.meter_Meter_Lapse(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), tk[6] < once[1] and tk[6] or once[1], c, c_o)
 end
end
F.pool_Pool_finish = function(t, tk) -- internal/pool/lifecycle.go:273
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
  F.meter_Meter_Bind(in_, d, r, once[1], c, c_o)
  F.meter_Meter_Release(in_, d, c, c_o)
  F.pool_Pool_changed(c, c_o)
 end
 once[5] = once[5] - 1
 F.pool_Pool_end(t, tk)
end
F.pool_Pool_spare = function(i) -- internal/pool/insts.go:316
 local in_ = S_insts[i] or ld(S_insts, i)
 if in_[16] > 0 or (floor(once[1] / 2^(20)) % 4294967296) - in_[17] < F.pool_Pool_keepFor(in_) or (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))[7] == 0 then
  return false
 end
 local _, _, r = F.pool_Pool_touch(i)
 return (in_[4] == 0 and in_[5] == 0 and in_[9] == 0) and (r == nil or (r[3] == 0 and r[4] == 0 and r[5] == 0))
end
F.pool_Pool_dropInst = function(i) -- internal/pool/insts.go:129
 local in_ = S_insts[i] or ld(S_insts, i)
 local name = F.pool_names_sole(in_, 22, (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))[7])
 if name ~= 0 then
  local t1_, t1_o = F.flat_Names_Tags(name)
  local link, link_o = t1_, t1_o+1
  while link[link_o+1] ~= i do link, link_o = (S_insts[link[link_o+1]] or ld(S_insts, link[link_o+1])), 18 end
  link[link_o+1] = in_[19]
 else indexRemove(X.instIx, F.pool_scopeHash(in_[11], in_, 22), i) end
 F.pool_Pool_strike(in_[11], i)
 F.pool_Pool_dropNames(in_, 22)
 if in_[15] ~= 0 then slabFree(S_rings, in_[15]) end
 local kind = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))[1]
 if band(cfg[61], (1 * 2^(in_[11]))) == 0 then
 elseif kind == 2 then slabFree(S_stocks, in_[18])
 elseif kind == 1 then slabFree(S_paces, in_[18]) end
 if in_[28] ~= 0 then slabFree(S_models, in_[28]) end
 slabFree(S_insts, i)
end
F.pool_Pool_burySome = function(n) -- internal/pool/leases.go:251
 for t1_ = 0, n - 1 do
  once[23] = once[23] + 1
  if once[23] >= slabEnd(S_leases) then
   once[23] = 0
   return 
  end
  F.pool_Pool_buryOne(once[23])
 end
end
F.pool_callers_sweep = function(n, now_, lease) -- internal/pool/callers.go:85
 local crowded, memory = 2 * slabLen(S_crecs) > 32768, 3600000000
 if crowded then memory = lease > 360000000 and lease or 360000000 end
 for t1_ = 0, n - 1 do
  sum[14] = sum[14] + 1
  if sum[14] >= slabEnd(S_crecs) then
   sum[14] = 0
   return 
  end
  local r = S_crecs[sum[14]] or ld(S_crecs, sum[14])
  if not (r[1] == 0 or r[3] ~= 0 or now_ - (max(r[13], mul(r[2], 2^(20)))) < memory or (not crowded and not F.flat_Names_Sole(r[1]))) then
   local t2_, t2_o = F.flat_Names_Tags(r[1])
   t2_[t2_o+1] = 0
   if r[1] ~= 0 then F.flat_Names_Drop(r[1]) end
   slabFree(S_crecs, sum[14])
  end
 end
end
F.pool_Pool_sweepSessions = function(n) -- internal/pool/sessions.go:191
 for t1_ = 0, n - 1 do
  once[24] = once[24] + 1
  if once[24] >= slabEnd(S_sessions) then
   once[24] = 0
   return 
  end
  F.pool_Pool_sweepSession()
 end
end
F.pool_Pool_freeAt = function(at, free) -- internal/pool/members.go:295
 free = (quo(free + 1000000 - 1, 1000000) * 1000000)
 if at >= free then return true end
 if once[156] == 0 or free < once[156] then once[156] = free end
 return false
end
F.pool_Pool_lingers = function(limit) -- internal/pool/members.go:63
 if band(cfg[61], (1 * 2^(limit))) == 0 or cfg[limit+62] > 600000000 then return -1
 elseif (S_defs[limit+1] or ld(S_defs, limit+1))[1] == 3 then return 0 end
 return cfg[limit+62] + (S_defs[limit+1] or ld(S_defs, limit+1))[8]
end
F.pool_Pool_dropMember = function(i) -- internal/pool/members.go:224
 F.pool_Pool_unlink(i)
 local m = S_members[i] or ld(S_members, i)
 F.pool_Pool_setShare(m, 0)
 local t1_ = (S_sessions[m[1]] or ld(S_sessions, m[1]))
 t1_[8] = 0
 slabFree(S_members, i)
end
F.pool_partOf = function(share) -- internal/pool/members.go:45
 if share == 0 then return 0 end
 return (4503599627370496 - fmod(4503599627370496, share)) / share
end
F.pool_Pool_withhold = function(limit, at, part) -- internal/pool/members.go:308
 local d = (S_defs[limit+1] or ld(S_defs, limit+1))
 if d[1] ~= 0 then
  F.pool_Pool_setPart(limit, part)
  return 
 end
 do
  local i = 1
  while i < slabEnd(S_insts) do
   local in_ = S_insts[i] or ld(S_insts, i)
   if in_[12] ~= 0 and in_[11] == limit then
    F.meter_Meter_Advance(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), at)
   end
   i = i + 1
  end
 end
 F.pool_Pool_setPart(limit, part)
 local i = 1
 while i < slabEnd(S_insts) do
  local in_ = S_insts[i] or ld(S_insts, i)
  if in_[12] ~= 0 and in_[11] == limit then
   F.meter_Meter_Rerate(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)))
  end
  i = i + 1
 end
end
F.pool_Pool_scheduleWithheld = function() -- internal/pool/members.go:233
 once[155] = once[156]
 if once[149] ~= 0 then
  local at = F.pool_member_silentFrom((S_members[once[149]] or ld(S_members, once[149])))
  if once[155] == 0 or at < once[155] then once[155] = at end
 end
end
F.pause_State_pass = function(g, t) -- internal/pause/pause.go:91
 if g[1] == 1 and t >= g[2] then g[1], g[6], g[7], g[9] = 2, 0, 0, 0 end
 if g[1] == 2 and g[6] ~= 0 and t >= g[8] + 2000000 then F.pause_State_ramp(g, g[8] + 2000000, g[8]) end
 if g[1] == 3 then
  F.pause_ramp_pass(g, 10, t)
  if F.pause_ramp_over(g, 10, t) then g[1], g[11] = 0, 0 end
 end
end
F.pause_until = function(phase, at) return {0,phase,at,at} end -- internal/pause/pause.go:88
F.pause_ramp_next = function(r, r_o) -- internal/pause/ramp.go:107
 local at = ((r[r_o+3] == 0) and 0 or r[r_o+3] + F.pause_gap(min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4])))))
 if r[r_o+4] - (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4])) > (min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4])))) then
  at = max(at, r[r_o+2] + (r[r_o+8] + 1) * 500000)
 end
 return max(at, F.pause_ramp_bound(r, r_o))
end
F.pool_gateScope = function(scope, model, key) -- internal/pool/pauses.go:36
 scope = band(scope, 20)
 if band(scope, 4) == 0 or model == 0 then scope, model = band(scope, bnot(4)), 0 end
 if band(scope, 16) == 0 or key == 0 then scope, key = band(scope, bnot(16)), 0 end
 return scope, model, key
end
F.pool_Pool_ramps = function(i) -- internal/pool/ramps.go:20
 local l = (S_limits[i+1] or ld(S_limits, i+1))
 return l[7] ~= 0 and band(l[7], bnot(20)) == 0 and l[13] == 0 and (S_defs[i+1] or ld(S_defs, i+1))[1] ~= 3
end
F.pool_Pool_valid = function(op) -- internal/pool/acquire.go:70
 if max(#op[4], #op[5], #op[6], #op[7], #op[8]) > 256 then return false end
 for k = 0, #op[13] - 1 do
  local n = op[13][k+1][3]
  if n < 0 or n > 1099511627776 then return false end
 end
 return #op[13] <= 64 and op[4] ~= "" and floor(op[3] / 2^(63)) == 0 and op[9] < cfg[3] and (op[11] == 0 or op[9] == 0) and op[16] > 0 and op[16] <= 86400000000000 and op[15] >= 0 and op[15] <= 86400000000000 and op[14] <= 8640000000000000 and op[17] <= 2
end
F.pool_Pool_present = function(op) -- internal/pool/acquire.go:221
 local s = F.pool_Pool_sessionOf(op[2])
 if op[3] == 0 then
  s[2] = (s[2] > once[28] and s[2] or once[28]) + 1
  op[3] = s[2]
  move(op, 31, op, 1, 2)
  return true
 end
 if op[3] > s[2] then
  s[2] = op[3]
  return true
 end
 F.pool_Pool_poll(op)
 return false
end
F.pool_Pool_newTicket = function(op) -- internal/pool/ticket.go:96
 local i = slabNew(S_tickets)
 local t = S_tickets[i] or ld(S_tickets, i)
 move(t, 0, op, 1, 2)
 t[3] = once[1]
 t[5] = 9007199254740992
 t[24] = op[9]
 t[26] = (op[10] ~= 0) and 1 or 0
 t[31], t[32], t[34] = ((op[11] ~= 0) and 1 or 0), ((op[24] ~= 0) and 1 or 0), op[17]
 t[7], t[9] = quo(op[16], 1000), quo(op[15], 1000)
 t[16] = once[27]
 if op[14] >= 0 then t[5] = once[1] + quo(op[14], 1000) end
 t[10], t[11], t[12], t[13], t[14] = F.flat_Names_Hold(op[4]), 0, 0, 0, 0
 if op[5] ~= "" or op[6] ~= "" or op[7] ~= "" or op[8] ~= "" then
  t[11], t[12] = F.flat_Names_Hold(op[5]), F.flat_Names_Hold(op[6])
  t[13], t[14] = F.flat_Names_Hold(op[7]), F.flat_Names_Hold(op[8])
 end
 t[15] = F.pool_Pool_callerOf(t[10])
 F.pool_Pool_heard(t[15], t[24])
 local s = S_sessions[t[16]] or ld(S_sessions, t[16])
 s[5] = s[5] + 1
 if op[17] == 2 then s[7] = s[7] + 1 end
 F.pool_Pool_enter(i, t, 0)
 return i, t
end
F.pool_Pool_want = function(tk, amounts, force) -- internal/pool/acquire.go:94
 local limit, fits = 0, false
 fits = true
 for limit = 0, cfg[4] - 1 do
  local amount = F.pool_Pool_askedOf(amounts, limit)
  if amount ~= 0 then
   local c, c_o = tk, (tk[25])*5+35
   c[c_o+4], c[c_o+5] = F.pool_Pool_instOf(limit, tk, 9), limit % 256
   c[c_o+1], c[c_o+2], c[c_o+3] = amount, 0, 0
   local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
   if in_[1] > 0 and amount > in_[1] and not force then return limit, false end
   fits = fits and F.pool_inst_room(in_, d, r, amount) >= amount
   if fits and band(cfg[52], (1 * 2^(limit))) ~= 0 then
    local code, _ = F.pool_Pool_keptFrom(tk, c, c_o, in_, d, r)
    fits = code == 0
   end
   tk[25] = tk[25] + 1
   if unscoped[limit][2] == nil then in_[16] = in_[16] + 1 end
  end
 end
 return -1, fits
end
F.pool_Pool_refuseTooLarge = function(op, limit) -- internal/pool/pool.go:452
 F.pool_refuse(op, 6, 0)
 op[39] = (S_limits[limit+1] or ld(S_limits, limit+1))[1]
end
F.pool_Pool_pausesAllow = function(model, key) -- internal/pool/pauses.go:113
 local all, i = {1,0,0,0}, once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if ((band(g[35], 4) == 0 or g[36] == model) and (band(g[35], 16) == 0 or g[37] == key)) then
   local v = F.pause_State_Allow(g, once[1])
   if v[1] == 0 then
    local next_ = all[4] > v[4] and all[4] or v[4]
    if all[1] ~= 0 or v[3] > all[3] then all = copy_(v, 0, 4) end
    all[4] = next_
   end
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
 return copy_(all, 0, 4)
end
F.pool_Pool_grant = function(t, tk, counts_) -- internal/pool/acquire.go:154
 tk[4] = once[1]
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, r = F.pool_Pool_meterOf(c, c_o)
  in_[17] = (floor(once[1] / 2^(20)) % 4294967296)
  move(c, c_o, (F.meter_Meter_Take(in_, d, r, once[1], c[c_o+1], (once[29+18] > 0 and d[2] == 0 and once[29+18] > (2 * ((r == nil or r[4] == 0) and d[6] or r[4]))))), 0, 3)
  if band(cfg[52], (1 * 2^(c[c_o+5]))) ~= 0 then F.pool_Pool_took(tk[24], 1, c[c_o+1], in_, d) end
 end
 if counts_ and once[26] ~= 0 then F.pool_Pool_pausesSent(t, tk) end
 once[5] = once[5] + 1
 F.pool_Pool_sent(tk)
end
F.pool_Pool_hold = function(t, tk, op) -- internal/pool/acquire.go:173
 if tk[32] ~= 0 and tk[4] < once[1] then F.pool_Pool_regrant(tk) end
 tk[23] = 3
 F.pool_Pool_live(t, tk)
 F.pool_ticket_report(tk, op)
 if tk[32] ~= 0 then
  F.pool_Pool_pausesLost(t, tk, false)
  F.pool_Pool_spend(t, tk)
  once[9] = 1
 end
end
F.pool_Pool_enqueue = function(t, i, front) -- internal/pool/acquire.go:37
 local tk = S_tickets[t] or ld(S_tickets, t)
 tk[23], tk[18] = 1, ((i + 2147483648) % 4294967296 - 2147483648) + 1
 for k = 0, tk[25] - 1 do
  local t2_ = (S_insts[tk[(k)*5+39]] or ld(S_insts, tk[(k)*5+39]))
  t2_[22] = t2_[22] + tk[(k)*5+36]
 end
 local costs = F.pool_Pool_costs(tk)
 tk[17] = F.order_Queue_Push((F.pool_Pool_position(tk)), t, costs, front)
 local t3_ = (S_sessions[tk[16]] or ld(S_sessions, tk[16]))
 t3_[6] = t3_[6] + 1
 F.pool_Pool_scheduleWait(t, tk)
 once[9] = (once[9] ~= 0 or F.order_Queue_IsFirst(tk[17])) and 1 or 0
 T[1][i+1][31], once[8] = 2, 1
end
F.pool_Pool_keep = function(op) -- internal/pool/sessions.go:61
 op[31] = 5
 local i = F.pool_Pool_findSession(op[2])
 if i ~= 0 and not F.pool_Pool_past((S_sessions[i] or ld(S_sessions, i))) and op[15] <= 86400000000000 then
  local s = S_sessions[i] or ld(S_sessions, i)
  s[4] = max(s[4], once[1] + quo(op[15], 1000))
  op[31] = 1
  if s[5] == 0 then op[31] = 4 end
 end
end
F.pool_Pool_lookup = function(op) -- internal/pool/lifecycle.go:55
 local t, tk = F.pool_Pool_find(op, 1)
 if t == 0 then
  op[31] = 5
  local i = F.pool_Pool_findSession(op[2])
  if i ~= 0 and op[3] ~= 0 then
   local s = S_sessions[i] or ld(S_sessions, i)
   if op[3] <= s[2] and not (s[5] == 0 and s[8] == 0 and once[1] - s[3] >= 600000000) then op[31] = 4 end
  end
 end
 return t, tk
end
F.pool_Pool_scheduleWait = function(i, t) -- internal/pool/ticket.go:158
 local due = t[5]
 if t[9] > 0 then due = min(due, once[1] + t[9]) end
 if due < 9007199254740992 then F.pool_Pool_schedule(i, t, due) end
end
F.pool_Pool_live = function(t, tk) -- internal/pool/acquire.go:202
 tk[8] = once[1] + tk[7]
 local due = tk[8]
 if tk[34] == 1 then due = min(due, once[1] + 10000000) end
 F.pool_Pool_schedule(t, tk, due)
end
F.pool_ticket_report = function(tk, op) -- internal/pool/acquire.go:212
 local r, r_o = op, 30
 r[r_o+1] = 1
 move(r, r_o+1, tk, 0, 2)
 r[r_o+5] = tk[4]
 r[r_o+6] = (tk[4] - tk[3]) * 1000
end
F.pool_Pool_leaves = function(op) -- internal/pool/members.go:123
 op[31] = 4
 local at = F.pool_Pool_findSession(op[2])
 if at == 0 or (S_sessions[at] or ld(S_sessions, at))[8] == 0 then return end
 local silent = (S_members[(S_sessions[at] or ld(S_sessions, at))[8]] or ld(S_members, (S_sessions[at] or ld(S_sessions, at))[8]))[2] ~= 0
 F.pool_Pool_dropMember((S_sessions[at] or ld(S_sessions, at))[8])
 if silent then F.pool_Pool_weigh(once[1])
 else F.pool_Pool_scheduleWithheld() end
end
F.pool_Pool_findSession = function(id) -- internal/pool/sessions.go:26
 local h = F.pool_sessionHash(id)
 local i, n = indexSeek(X.sessIx, h, 0)
 while i ~= 0 do
  if (S_sessions[i] or ld(S_sessions, i))[1] == id then return i end
  i, n = indexSeek(X.sessIx, h, n)
 end
 return 0
end
F.pool_Pool_link = function(i) -- internal/pool/members.go:190
 local m = S_members[i] or ld(S_members, i)
 m[7], m[8] = once[150], 0
 if once[150] ~= 0 then
  local t1_ = (S_members[once[150]] or ld(S_members, once[150]))
  t1_[8] = i
 else once[149] = i end
 once[150] = i
 once[152] = once[152] + 1
end
F.pool_Pool_promise = function(m, known) -- internal/pool/members.go:160
 if known ~= 0 and known == m[6] then F.pool_Pool_setShare(m, known) end
 local free, want = quo(4503599627370496 - once[154], 4096), 0
 if free > 0 then want = quo((once[152] + 1) * 1099511627776 + free - 1, free) end
 local room = 4503599627370496 - once[153] + F.pool_partOf(m[5])
 if room <= 0 then want = 0
 elseif want > 0 and ((want == 0) and 0 or (4503599627370496 - fmod(4503599627370496, want)) / want) > room then
  want = quo(4503599627370496 + room - 1, room)
 end
 if want == 0 or want > 1048576 then
  m[6] = m[5]
  return 
 end
 m[6] = want
 if m[5] == 0 or want < m[5] then F.pool_Pool_setShare(m, want) end
end
F.pool_Pool_fits = function(tk) -- internal/pool/acquire.go:141
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
  local code, _ = F.pool_Pool_keptFrom(tk, c, c_o, in_, d, r)
  if code ~= 0 or F.pool_inst_room(in_, d, r, c[c_o+1]) < c[c_o+1] then return false end
 end
 return true
end
F.pool_wheel_remove = function(w, w_o, t) -- internal/pool/wheel.go:51
 if t[6] == 0 then return end
 if t[19] == (-1) then
  F.pool_wheel_leave(w, w_o, t)
  return 
 end
 if t[20] ~= 0 then
  local t1_ = (S_tickets[t[20]] or ld(S_tickets, t[20]))
  t1_[21] = t[21]
 else w.slots[t[19]+1] = t[21] end
 if t[21] ~= 0 then
  local t2_ = (S_tickets[t[21]] or ld(S_tickets, t[21]))
  t2_[20] = t[20]
 end
 t[6], t[20], t[21] = 0, 0, 0
 w[w_o+4] = w[w_o+4] - 1
end
F.pool_Pool_touchCharge = function(c, c_o) -- internal/pool/insts.go:281
 local in_, d, r = F.pool_Pool_meterOf(c, c_o)
 F.meter_Meter_Advance(in_, d, r, once[1])
 return in_, d, r
end
F.meter_Meter_Bind = function(m, d, r, t, c, c_o) -- internal/meter/charge.go:126
 if d[1] == 3 or c[c_o+3] == 0 then return end
 if (c[c_o+3] == 2 and t >= c[c_o+2] and not (d[1] == 0 and c[c_o+3] == 2 and F.meter_Ring_live(r, d, c[c_o+2]))) then
  c[c_o+3] = 0
  return 
 elseif c[c_o+3] == 2 then
  F.meter_Meter_takeOut(m, d, r, c[c_o+1], c, c_o)
  F.meter_Meter_add(m, d, r, t, c[c_o+1])
 elseif (d[1] == 2 and m[8] ~= 0) then
  m[4] = m[4] - c[c_o+1]
  if t >= m[7] then m[6] = m[6] + c[c_o+1] end
 else
  m[4] = m[4] - c[c_o+1]
  F.meter_Meter_add(m, d, r, t, c[c_o+1])
 end
 c[c_o+3], c[c_o+2] = 0, t
end
F.pool_Pool_changed = function(c, c_o) -- internal/pool/lifecycle.go:287
 return band(cfg[61], (1 * 2^(c[c_o+5]))) == 0 and F.order_Queue_Unpark(c[c_o+4])
end
F.pool_Pool_judged = function(tk, v) -- internal/pool/history.go:148
 local pd, t1_ = F.pool_Pool_noted(tk), v
 if t1_ == 2 or t1_ == 4 then
  local t2_ = F.pool_Pool_callerFor(tk)
  t2_[7] = t2_[7] + 1
  sum[7] = sum[7] + 1
  once[29] = once[1]
  F.pool_history_refused(once[1])
  if pd ~= nil then pd[7] = pd[7] + 1 end
 elseif t1_ == 3 or t1_ == 5 or t1_ == 6 or t1_ == 7 then
  if pd ~= nil then pd[8] = pd[8] + 1 end
 end
end
F.pool_Pool_served = function(op, key) -- internal/pool/trouble.go:13
 local t1_ = op[18]
 if t1_ == 7 or t1_ == 3 or t1_ == 5 then F.pool_Pool_fail(op, key)
 elseif t1_ == 6 then
  if op[23] ~= "" and op[22] == 0 then F.pool_Pool_fail(op, key) end
 elseif t1_ == 0 then
 else F.pool_Pool_endFailuresOf(key) end
end
F.pool_Pool_countAnswer = function(model, op) -- internal/pool/answers.go:85
 if op[18] == 0 or op[18] == 7 then return end
 if op[22] == 0 then
  F.pool_Pool_countAccepted(model, 1)
  return 
 end
 local a = F.pool_Pool_answersOf(model)
 a[3], a[4] = once[1], once[1]
 local s, s_o = F.pool_answers_span(a, once[1])
 local status = (op[22] + 2147483648) % 4294967296 - 2147483648
 s[s_o+5] = (s[s_o+5] ~= 0 or (s[s_o+3] > 0 and s[s_o+4] ~= status)) and 1 or 0
 s[s_o+2] = s[s_o+2] + 1
 s[s_o+3] = s[s_o+3] + 1
 s[s_o+4] = status
 local old = a[2]
 a[2] = F.flat_Names_Hold(sub(op[23], 1, (#op[23] < 256 and #op[23] or 256)))
 if old ~= 0 then F.flat_Names_Drop(old) end
end
F.pool_Pool_learn = function(op, who, who_o, made, tk) -- internal/pool/learn.go:54
 for i = 0, #op[21] - 1 do
  repeat
   local o = op[21][i+1]
   local limit = F.pool_Pool_Index(o[1])
   if limit < 0 then break end
   local l = (S_limits[limit+1] or ld(S_limits, limit+1))
   if band(l[7], bnot(20)) ~= 0 then break end
   local at = F.pool_Pool_instOf(limit, who, who_o)
   if at == once[limit+81] and at ~= 0 then
    F.pool_Pool_learnCrowd(limit, o, made)
    break
   end
   local in_, d, r = F.pool_Pool_touch(at)
   F.pool_Pool_learnSize(at, in_, d, l, o[2])
   F.pool_Pool_fit(in_, o, made, tk)
   F.pool_Pool_comesBack(in_, o, made, tk)
   d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
   local current = made >= in_[8] - d[4]
   if o[4] >= 0 and l[2] == 2 then
    local slop = 1200000
    if o[5] > 0 then slop = quo(o[5], 1000) end
    local lo, hi = made + quo(o[4], 1000) - slop, once[1] + quo(o[4], 1000) + slop
    current = F.meter_Meter_ObserveReset(in_, d, r, once[1], lo, hi)
   end
   local whole = o[2]
   if d[1] == 0 then whole = in_[1] end
   if o[2] > 0 and o[2] <= 1099511627776 and o[3] >= 0 and o[3] <= whole and (current or not ((d[1] == 2 and in_[8] ~= 0))) then
    if l[13] ~= 0 and F.meter_Meter_Believe(in_, d, whole - o[3]) then
     F.pool_Pool_sample(in_, d, r, o[3], F.pool_ticket_cost(tk, limit))
     break
    end
    local rough = l[12] ~= 0 or F.pool_Pool_explained(in_, made, whole - o[3])
    d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
    F.meter_Meter_ObserveUsed(in_, d, r, once[1], made, whole - o[3], rough)
    if tk ~= nil then
     F.pool_Pool_contradicts(in_, o, whole)
     F.pool_Pool_follow(in_, o, made, tk)
    end
    F.pool_Pool_sample(in_, d, r, o[3], F.pool_ticket_cost(tk, limit))
   end
  until true
 end
end
F.pool_Pool_judge = function(op, who, who_o, granted, t) -- internal/pool/pauses.go:222
 local hint, t1_ = quo(op[19], 1000), op[18]
 if t1_ == 1 then
  local i = once[26]
  while i ~= 0 do
   local g = S_gates[i] or ld(S_gates, i)
   if ((band(g[35], 4) == 0 or g[36] == who[who_o+3]) and (band(g[35], 16) == 0 or g[37] == who[who_o+5])) then
    F.pause_State_Succeeded(g, once[1], granted, t)
   end
   i = (S_gates[i] or ld(S_gates, i))[41]
  end
 elseif t1_ == 2 then
  local g = F.pool_Pool_gateFor(op, who, who_o)
  return F.pause_State_Throttled(g, once[1], granted, hint, cfg, 77) and g[4] == 1
 elseif t1_ == 3 then
  F.pause_State_Overloaded(F.pool_Pool_gateFor(op, who, who_o), once[1], granted, hint, cfg, 80, cfg[80])
 elseif t1_ == 4 then
  local g = F.pool_Pool_gateFor(op, who, who_o)
  if not F.pause_State_Exhausted(g, once[1], granted, hint) then
   F.pause_State_Throttled(g, once[1], granted, 0, cfg, 77)
  end
 end
 return false
end
F.pool_Pool_unexplained = function(tk, scope) -- internal/pool/learn.go:177
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
  local r = (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
  if band(cfg[61], (1 * 2^(c[c_o+5]))) == 0 or r == nil or in_[1] == 0 then
  elseif in_[9] > 0 or F.meter_Meter_Room(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), r) < 0 then
  elseif band(scope, bnot((S_limits[c[c_o+5]+1] or ld(S_limits, c[c_o+5]+1))[7])) ~= 0 then
  elseif F.pool_Pool_unfollow(in_) then
  elseif F.pool_Pool_mayBeWindow(in_, in_[1] + c[c_o+1]) then
   F.meter_Ring_Unbrief(r, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)))
   F.pool_Pool_turn(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))[4], 0, in_[1])
  else
   F.meter_Ring_Odd(r, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), once[1])
  end
 end
end
F.pool_Pool_settle = function(tk, used) -- internal/pool/lifecycle.go:213
 if #used == 0 or #used > 64 then return end
 local before, at = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, {0,0,0,0,0,0,0,0}
 if tk[30] ~= 0 then
  before = F.pool_Pool_costs(tk)
  at = F.pool_Pool_position(tk)
 end
 if tk[25] < cfg[4] then F.pool_Pool_chargeUnstated(tk, used) end
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local actual, known = F.pool_Pool_usedOf(used, c[c_o+5])
  if known and actual ~= c[c_o+1] then
   local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
   if in_[1] > 0 then actual = min(actual, 8 * in_[1]) end
   local estimate = c[c_o+1]
   F.meter_Meter_Settle(in_, d, r, once[1], c, c_o, actual)
   F.pool_Pool_settled(tk, c, c_o, c[c_o+1] - estimate)
   if band(cfg[52], (1 * 2^(c[c_o+5]))) ~= 0 then F.pool_Pool_tookLess(tk[24], tk[4], in_, estimate - c[c_o+1]) end
  end
 end
 if tk[30] ~= 0 and at[3] ~= 0 then
  local after = F.pool_Pool_costs(tk)
  F.order_Queue_Settled(at, before, after)
 end
end
F.pool_Pool_strictly = function(tk) -- internal/pool/lifecycle.go:292
 if cfg[50] == 0 then return false end
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if (S_defs[c[c_o+5]+1] or ld(S_defs, c[c_o+5]+1))[2] == 1 and c[c_o+3] == 1 then return true end
 end
 return false
end
F.pool_Pool_spend = function(t, tk) -- internal/pool/lifecycle.go:306
 local held = false
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
  F.meter_Meter_Spend(in_, d, r, once[1], tk[4], c, c_o)
  F.meter_Meter_Release(in_, d, c, c_o)
  F.pool_Pool_changed(c, c_o)
  held = held or c[c_o+3] == 1
 end
 once[5] = once[5] - 1
 if held then
  tk[23] = 4
  return 
 end
 F.pool_Pool_end(t, tk)
end
F.pool_Pool_withNames = function(op, f) -- internal/pool/pauses.go:299
 local who = {F.flat_Names_Hold(sub(op[4], 1, (#op[4] < 256 and #op[4] or 256))),0,F.flat_Names_Hold(sub(op[6], 1, (#op[6] < 256 and #op[6] or 256))),0,F.flat_Names_Hold(sub(op[8], 1, (#op[8] < 256 and #op[8] or 256)))}
 f(who, 0)
 if who[1] ~= 0 then F.flat_Names_Drop(who[1]) end
 if who[3] ~= 0 then F.flat_Names_Drop(who[3]) end
 if who[5] ~= 0 then F.flat_Names_Drop(who[5]) end
end
F.pool_Pool_since = function(scope, who, who_o) -- internal/pool/learn.go:41
 local n_scope, model, key = F.pool_gateScope(scope, who[who_o+3], who[who_o+5])
 scope = n_scope
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if g[35] == scope and g[36] == model and g[37] == key and (F.pause_State_Allow(g, once[1]))[2] == 1 then
   return g[3]
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
 return once[1]
end
F.pool_Pool_unbrief = function(who, who_o) -- internal/pool/learn.go:157
 for i = 0, cfg[4] - 1 do
  if band(cfg[61], (1 * 2^(i))) ~= 0 then
   local at, per = unscoped[i][1], (S_limits[i+1] or ld(S_limits, i+1))[7]
   if per ~= 0 then
    at = F.pool_Pool_findInst(i, (F.pool_scoped(who, who_o, per)), 0)
    if at == 0 then at = once[i+81] end
   end
   if at ~= 0 then
    local in_ = S_insts[at] or ld(S_insts, at)
    F.meter_Ring_Unbrief((not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)))
   end
  end
 end
end
F.pool_history_refused = function(t) -- internal/pool/history.go:287
 local c, c_o = past.week, (fmod((t - fmod(t, 3600000000)) / 3600000000, 168))*2
 if c[c_o+1] ~= (((t - fmod(t, 3600000000)) / 3600000000) % 4294967296) then
  c[c_o+1], c[c_o+2] = ((t - fmod(t, 3600000000)) / 3600000000) % 4294967296, 0
 end
 c[c_o+2] = c[c_o+2] + 1
end
F.pool_Pool_pauseOf = function(scope, model, key) -- internal/pool/pauses.go:48
 scope, model, key = F.pool_gateScope(scope, model, key)
 do
  local i = once[26]
  while i ~= 0 do
   local g = S_gates[i] or ld(S_gates, i)
   if g[35] == scope and g[36] == model and g[37] == key then return i end
   i = (S_gates[i] or ld(S_gates, i))[41]
  end
 end
 if slabLen(S_gates) >= 256 and scope ~= 0 then return F.pool_Pool_pauseOf(0, 0, 0) end
 F.pool_Pool_splitLanes(scope)
 local i = slabNew(S_gates)
 local g = S_gates[i] or ld(S_gates, i)
 g[35], g[36], g[37] = scope, model ~= 0 and F.flat_Names_Keep(model) or 0, key ~= 0 and F.flat_Names_Keep(key) or 0
 g[41] = once[26]
 if g[41] ~= 0 then
  local t1_ = (S_gates[g[41]] or ld(S_gates, g[41]))
  t1_[40] = i
 end
 once[26] = i
 return i
end
F.pool_Pool_setCause = function(g, op, agent) -- internal/pool/pauses.go:255
 local cause = op[23]
 if cause == "" then cause = F.store_Verdict_String(op[18]) end
 local old = g[38]
 g[38] = F.flat_Names_Hold(sub(cause, 1, (#cause < 256 and #cause or 256)))
 if old ~= 0 then F.flat_Names_Drop(old) end
 old = g[39]
 g[39] = agent ~= 0 and F.flat_Names_Keep(agent) or 0
 if old ~= 0 then F.flat_Names_Drop(old) end
end
F.pause_State_Pause = function(g, t, wait) -- internal/pause/pause.go:270
 F.pause_State_pass(g, t)
 F.pause_State_hold(g, t, wait < 2678400000000 and wait or 2678400000000)
end
F.pause_State_Resume = function(g, t) -- internal/pause/pause.go:298
 F.pause_State_pass(g, t)
 if g[1] == 1 or g[1] == 2 then
  g[2] = g[2] < t and g[2] or t
  F.pause_State_ramp(g, t, 0)
 end
 g[4], g[5] = 0, 0
end
F.pool_Pool_validMember = function(op) -- internal/pool/leases.go:133
 if op[4] == "" or max(#op[4], #op[5], #op[27]) > 256 or #op[28] > 16 then return false end
 local t2_ = op[28]
 for t1_ = 0, #t2_ - 1 do
  local name = t2_[t1_+1]
  if name == "" or #name > 256 then return false end
 end
 local s = copy_(op, 28, 2)
 return op[9] < cfg[3] and op[16] >= 0 and op[16] <= 86400000000000 and s[1] >= 0 and s[1] <= 1048576 and (s[1] == 0 or (s[2] > 0 and s[2] <= 86400000000000))
end
F.pool_Pool_bury = function() -- internal/pool/leases.go:244
 local i = 1
 while i < slabEnd(S_leases) do
  F.pool_Pool_buryOne(i)
  i = i + 1
 end
end
F.pool_callers_of = function(agent) -- internal/pool/callers.go:47
 local t1_, t1_o = F.flat_Names_Tags(agent)
 local tag, tag_o = t1_, t1_o
 if tag[tag_o+1] == 0 then
  tag[tag_o+1] = slabNew(S_crecs)
  local t2_ = (S_crecs[tag[tag_o+1]] or ld(S_crecs, tag[tag_o+1]))
  t2_[1] = agent ~= 0 and F.flat_Names_Keep(agent) or 0
 end
 return tag[tag_o+1]
end
F.pool_Pool_buryOne = function(i) -- internal/pool/leases.go:262
 local l = S_leases[i] or ld(S_leases, i)
 if l[1] ~= 0 and l[5] <= once[1] and l[6] <= once[1] then
  local caller = far(1, F.flat_Names_Tags(l[1]))
  F.pool_Pool_dropLease(i)
  F.pool_Pool_dropCaller(caller)
 end
end
F.pool_Pool_slotFree = function(user, mine, most) -- internal/pool/leases.go:175
 if most == 0 then return once[1] end
 if mine ~= 0 then
  local l = S_leases[mine] or ld(S_leases, mine)
  if l[2] == user and l[6] > once[1] then return once[1] end
 end
 local taken, i = {}, 1
 while i < slabEnd(S_leases) do
  local l = S_leases[i] or ld(S_leases, i)
  if not (l[1] == 0 or l[2] ~= user or l[6] <= once[1] or i == mine) then
   local t1_ = taken
   t1_[#t1_+1] = l[6]
  end
  i = i + 1
 end
 local over = #taken - most
 if over < 0 then return once[1] end
 sort(taken)
 return taken[over+1]
end
F.pool_Pool_dropCaller = function(i) -- internal/pool/crowd.go:156
 local c = S_crecs[i] or ld(S_crecs, i)
 if c[1] == 0 or c[3] ~= 0 or c[10] ~= 0 or c[2] ~= 0 or not F.flat_Names_Sole(c[1]) then return end
 local t1_, t1_o = F.flat_Names_Tags(c[1])
 t1_[t1_o+1] = 0
 if c[1] ~= 0 then F.flat_Names_Drop(c[1]) end
 slabFree(S_crecs, i)
end
F.pool_lease_heldBy = function(l, session, shared) -- internal/pool/leases.go:149
 if l[7] == session then return end
 l[8], l[9] = 0, 0
 if shared then l[8], l[9] = l[7], l[5] end
 l[7] = session
end
F.pool_Pool_setWaits = function(l, names) -- internal/pool/leases.go:161
 local was, n = copy_(l, 9, 16), l[26]
 l[26] = 0
 local t2_ = names
 for t1_ = 0, #t2_ - 1 do
  local name = t2_[t1_+1]
  l[l[26]+10] = F.flat_Names_Hold(name)
  l[26] = l[26] + 1
 end
 for i = 0, n - 1 do if was[i+1] ~= 0 then F.flat_Names_Drop(was[i+1]) end end
end
F.pool_Pool_countLiving = function() -- internal/pool/leases.go:281
 clear_(once, 10, 8)
 do
  local i = 1
  while i < slabEnd(S_leases) do
   local l = S_leases[i] or ld(S_leases, i)
   if l[1] ~= 0 then once[l[27]+11] = once[l[27]+11] > l[5] and once[l[27]+11] or l[5] end
   i = i + 1
  end
 end
 local i = 1
 while i < slabEnd(S_crecs) do
  local c = S_crecs[i] or ld(S_crecs, i)
  if c[1] ~= 0 and c[9] ~= 255 and c[2] > 0 then
   once[c[9]+11] = max(once[c[9]+11], (max(c[13], mul(c[2], 2^(20)))) + cfg[49])
  end
  i = i + 1
 end
end
F.pool_Pool_handOn = function(l, op) -- internal/pool/leases.go:226
 if op[27] == "" or l[5] <= once[1] then return false
 elseif l[7] ~= op[2] or F.flat_Names_Text(l[3]) ~= op[27] then
  if l[8] == op[2] then l[8] = 0 end
  return true
 elseif l[8] == 0 or l[9] <= once[1] then return false end
 l[7], l[5] = l[8], l[9]
 l[8] = 0
 return true
end
F.pool_Pool_dropLease = function(i) -- internal/pool/leases.go:270
 local l = S_leases[i] or ld(S_leases, i)
 F.pool_Pool_setWaits(l, {})
 if l[2] ~= 0 then F.flat_Names_Drop(l[2]) end
 if l[3] ~= 0 then F.flat_Names_Drop(l[3]) end
 local t1_ = (S_crecs[far(1, F.flat_Names_Tags(l[1]))] or ld(S_crecs, far(1, F.flat_Names_Tags(l[1]))))
 t1_[3] = 0
 if l[1] ~= 0 then F.flat_Names_Drop(l[1]) end
 slabFree(S_leases, i)
end
F.policy_Scatter_Next = function(s, s_o, t, window) -- internal/policy/scatter.go:29
 if window <= 0 then return t end
 window = window < 274877906944 and window or 274877906944
 if t >= s[s_o+2] then
  s[s_o+1], s[s_o+2], s[s_o+3] = t, t + window, 1
  return t
 end
 local at = s[s_o+1] + quo(mul(window, (floor(reverse16(s[s_o+3] % 65536) / 2^(1)))), 32768)
 local late = t - at
 if late > 0 then at = at + mul(quo(late + window - 1, window), window) end
 s[s_o+3] = fmod(s[s_o+3] + 1, 32768)
 s[s_o+2] = max(s[s_o+2], s[s_o+1] + window, at)
 return at
end
F.pool_Pool_lose = function(i) -- internal/pool/forget.go:46
 if once[148] == 0 then return end
 local limit = (S_insts[i] or ld(S_insts, i))[11]
 if not (band(cfg[61], (1 * 2^(limit))) ~= 0 and (S_defs[limit+1] or ld(S_defs, limit+1))[2] ~= 2 and cfg[limit+62] <= 600000000) then
  return 
 end
 local in_, d, r = F.pool_Pool_touch(i)
 F.meter_Meter_Lose(in_, d, r, once[1], once[148])
end
F.pool_Pool_died = function(i) -- internal/pool/members.go:143
 local m = S_members[i] or ld(S_members, i)
 if m[2] == 0 then
  F.pool_Pool_dropMember(i)
  return false
 end
 m[4] = min(m[4], once[1] + 3000000)
 return true
end
F.flat_Tree_Min = function(root) -- internal/flat/tree.go:90
 if root == 0 then return 0 end
 while true do
  local left = (S_tnodes[root] or ld(S_tnodes, root))[4]
  if left == 0 then return root end
  root = left
 end
end
F.flat_Tree_KeyOf = function(i) return copy_((S_tnodes[i] or ld(S_tnodes, i)), 0, 2) end -- internal/flat/tree.go:121
F.flat_Tree_Value = function(i) return (S_tnodes[i] or ld(S_tnodes, i))[3] end -- internal/flat/tree.go:118
F.order_Queue_leave = function(f) -- internal/order/queue.go:350
 local fl = S_qflows[f] or ld(S_qflows, f)
 if fl[16] ~= 0 then
  F.order_Queue_leaveSpot(f)
  F.flat_Tree_Delete(counts, 14, fl[13])
 else F.flat_Tree_Delete((S_qlanes[fl[10]] or ld(S_qlanes, fl[10])), fl[8]+24, fl[13]) end
 fl[13] = 0
end
F.order_Queue_enter = function(f) -- internal/order/queue.go:340
 local fl = S_qflows[f] or ld(S_qflows, f)
 local key = {(S_qmembers[fl[9]] or ld(S_qmembers, fl[9]))[1],(S_qwaiters[fl[11]] or ld(S_qwaiters, fl[11]))[5]}
 if cfg[84] == 2 then key[1] = 0 end
 fl[13] = F.flat_Tree_Insert((S_qlanes[fl[10]] or ld(S_qlanes, fl[10])), fl[8]+24, key, f)
end
F.order_Queue_Unpark = function(on) -- internal/order/park.go:25
 local found, h = false, F.order_onHash(on)
 local i, p = indexSeek(X.spotIx, h, 0)
 while i ~= 0 do
  local s = S_qspots[i] or ld(S_qspots, i)
  if s[1] == on then
   local t1_ = T[5]
   t1_[#t1_+1] = F.flat_Tree_Value(F.flat_Tree_Min(s[3]))
  end
  i, p = indexSeek(X.spotIx, h, p)
 end
 local t3_ = T[5]
 for t2_ = 0, #t3_ - 1 do
  local f = t3_[t2_+1]
  F.order_Queue_leave(f)
  F.order_Queue_enter(f)
 end
 found = #T[5] > 0
 T[5] = {}
 return found
end
F.order_Queue_Heads = function(strict, each) -- internal/order/heads.go:37
 T[3], T[4] = {}, {}
 F.order_Queue_findLeast()
 local i = counts[14]
 while i ~= 0 do
  local next_ = (S_qlanes[i] or ld(S_qlanes, i))[23]
  if not F.order_Queue_laneHeads(i, strict, each) then F.order_Queue_retire(i) end
  i = next_
 end
 if #T[3] > 1 then
  sortBy(T[3], function(a, b)
   return (firstOf(compare(a[3+1], b[3+1]), compare(a[3+2], b[3+2]), compare(a[3+3], b[3+3])))
  end)
 end
 return T[3]
end
F.pool_Pool_strict = function() return F.pool_Pool_strictFrom(2) end -- internal/pool/pauses.go:175
F.pool_Pool_findRival = function(heads) -- internal/pool/serve.go:123
 once[10] = 0
 if cfg[52] == 0 or cfg[28] == 0 then return 0 end
 local t2_ = heads
 for i = 0, #t2_ - 1 do
  local h = copy_(t2_[i+1], 0, 6)
  if h[3] == (0 + 1) then
   local t = F.order_Queue_Ticket(h[1])
   local tk = S_tickets[t] or ld(S_tickets, t)
   if (F.pool_Pool_pausesAllow(tk[12], tk[14]))[1] ~= 0 then
    once[10] = t
    return i
   end
  end
 end
 return 0
end
F.order_Queue_Ticket = function(w) return (S_qwaiters[w] or ld(S_qwaiters, w))[4] end -- internal/order/queue.go:208
F.pool_Pool_wakeFor = function(t, at) -- internal/pool/serve.go:43
 local before = once[2]
 F.pool_Pool_wakeAt(at)
 if once[2] ~= before then cfg[85] = t end
end
F.order_Queue_Held = function(h) -- internal/order/heads.go:116
 local t1_ = T[4]
 t1_[#t1_+1] = copy_(h, 0, 6)
end
F.pool_Pool_passOn = function(tk) -- internal/pool/serve.go:143
 local any = false
 if tk[28] == 0 then return false end
 tk[28] = 0
 for k = 0, tk[25] - 1 do any = F.pool_Pool_changed(tk, (k)*5+35) or any end
 return any
end
F.pool_Pool_tooBig = function(tk) -- internal/pool/serve.go:156
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
  if in_[1] > 0 and c[c_o+1] > in_[1] then return c[c_o+5] end
 end
 return -1
end
F.pool_Pool_dismiss = function(t, tk, limit) -- internal/pool/serve.go:167
 if tk[18] > 0 then F.pool_Pool_refuseTooLarge(T[1][(tk[18] - 1)+1], limit)
 else
  local t1_ = T[2]
  t1_[#t1_+1] = copy_(tk, 0, 2)
 end
 F.pool_Pool_leaveQueue(tk)
 F.pool_Pool_end(t, tk)
end
F.pool_Pool_lacksOwn = function(tk) -- internal/pool/serve.go:179
 local on, at = 0, 0
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if band(cfg[61], (1 * 2^(c[c_o+5]))) == 0 then
   local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
   if F.order_Queue_ParkedBefore(tk[17], c[c_o+4]) then return c[c_o+4], 9007199254740992 end
   if F.pool_inst_room(in_, d, r, c[c_o+1]) < c[c_o+1] then
    tk[22] = bor(tk[22], (1 * 2^(c[c_o+5])))
    return c[c_o+4], F.pool_inst_readyAt(in_, d, r, once[1], c[c_o+1])
   end
  end
 end
 return 0, 0
end
F.order_Queue_Park = function(w, on, at) -- internal/order/park.go:14
 local f = (S_qwaiters[w] or ld(S_qwaiters, w))[1]
 local fl = S_qflows[f] or ld(S_qflows, f)
 F.order_Queue_leave(f)
 fl[13] = F.flat_Tree_Insert(counts, 14, ({at,f}), f)
 fl[16] = F.order_Queue_spotOf(on, fl[10])
 fl[17] = F.flat_Tree_Insert((S_qspots[fl[16]] or ld(S_qspots, fl[16])), 2, ({(S_qwaiters[fl[11]] or ld(S_qwaiters, fl[11]))[5],0}), f)
end
F.pool_Pool_keptFromAny = function(tk) -- internal/pool/stock.go:118
 local at = 0
 if cfg[52] == 0 or tk[31] ~= 0 then return 0 end
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if band(cfg[52], (1 * 2^(c[c_o+5]))) ~= 0 then
   local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
   F.pool_inst_begin(in_, once[25])
   if band(in_[14], (1 * 2^(tk[24]))) ~= 0 then at = 9007199254740992
   else
    local code, until_ = F.pool_Pool_keptFrom(tk, c, c_o, in_, d, r)
    local t2_ = code
    if t2_ == 0 then
    elseif t2_ == 13 or t2_ == 14 then
     in_[14] = bor(in_[14], 254)
     at = at > until_ and at or until_
     F.pool_Pool_wakeAt(until_)
    else
     in_[14] = bor(in_[14], (1 * 2^(tk[24])))
     at = at > until_ and at or until_
     F.pool_Pool_wakeAt(until_)
    end
   end
  end
 end
 return at
end
F.pool_Pool_lacksShared = function(tk) -- internal/pool/serve.go:199
 local at = 0
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if band(cfg[61], (1 * 2^(c[c_o+5]))) ~= 0 then
   local in_, d, r = F.pool_Pool_touchCharge(c, c_o)
   local claimed = ((in_[20] ~= once[25]) and 0 or in_[21])
   if F.pool_inst_room(in_, d, r, c[c_o+1]) - claimed < c[c_o+1] then
    tk[22] = bor(tk[22], (1 * 2^(c[c_o+5])))
    local ready = 9007199254740992
    if claimed == 0 then ready = F.pool_inst_readyAt(in_, d, r, once[1], c[c_o+1])
    elseif claimed < 2199023255552 then ready = F.meter_Meter_ReadyAt(in_, d, r, once[1], claimed + c[c_o+1]) end
    at = at > ready and at or ready
   end
  end
 end
 return at
end
F.pool_Pool_claim = function(tk) -- internal/pool/serve.go:244
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if band(cfg[61], (1 * 2^(c[c_o+5]))) ~= 0 then
   local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
   F.pool_inst_begin(in_, once[25])
   if band(tk[22], (1 * 2^(c[c_o+5]))) ~= 0 then in_[21] = 2199023255552
   else in_[21] = min(in_[21] + c[c_o+1], 2199023255552) end
  end
 end
end
F.order_Queue_Close = function(h, pass) -- internal/order/heads.go:110
 local t1_ = (S_qlanes[h[2]] or ld(S_qlanes, h[2]))
 t1_[24] = pass
end
F.pool_Pool_limitsBind = function(who, who_o) -- internal/pool/pauses.go:165
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if ((band(g[35], 4) == 0 or g[36] == who[who_o+3]) and (band(g[35], 16) == 0 or g[37] == who[who_o+5])) then
   F.pause_State_LimitsBind(g)
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
end
F.pool_Pool_admit = function(t) -- internal/pool/serve.go:261
 local tk = S_tickets[t] or ld(S_tickets, t)
 local costs = F.pool_Pool_costs(tk)
 F.order_Queue_Granted(tk[17], costs)
 tk[30] = 1
 F.pool_Pool_unqueue(tk)
 F.pool_Pool_grant(t, tk, true)
 for k = 0, tk[25] - 1 do F.pool_Pool_changed(tk, (k)*5+35) end
 if tk[18] > 0 then
  local op = T[1][(tk[18] - 1)+1]
  tk[18] = 0
  F.pool_Pool_hold(t, tk, op)
  return 
 end
 tk[23] = 2
 F.pool_Pool_schedule(t, tk, once[1] + 1000000)
 local t2_ = T[2]
 t2_[#t2_+1] = copy_(tk, 0, 2)
end
F.pool_Pool_holding = function(id, id_o) -- internal/pool/pauses.go:206
 local t, tk = F.pool_Pool_find(id, id_o)
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if not (t ~= 0 and not ((band(g[35], 4) == 0 or g[36] == tk[12]) and (band(g[35], 16) == 0 or g[37] == tk[14]))) then
   local v = F.pause_State_Allow(g, once[1])
   if v[1] == 0 or not (g[1] == 0 or (g[1] == 3 and g[12] ~= 0 and once[1] - g[12] >= 10000000)) then return true end
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
 return false
end
F.pool_Pool_why = function(t) -- internal/pool/serve.go:299
 local reason, least, tk, code, on = {0,0,"",0}, 0, S_tickets[t] or ld(S_tickets, t), 2, -1
 local policy, policyOn, at, unknown, ahead = 0, -1, once[1], false, F.order_Queue_Ahead(tk[17], cfg[52] ~= 0)
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local in_, d, ring = F.pool_Pool_touchCharge(c, c_o)
  local before = F.order_Share(in_[22] - c[c_o+1], ahead)
  local e = F.pool_Pool_estimate(in_, d, ring, before, c[c_o+1])
  if e > at or (on < 0 and band(tk[22], (1 * 2^(c[c_o+5]))) ~= 0) then at, on = at > e and at or e, c[c_o+5] end
  if F.pool_inst_room(in_, d, ring, c[c_o+1]) < c[c_o+1] then
   code = 1
   if on < 0 then on = c[c_o+5] end
   if F.pool_depends(in_, d, ring, once[1], c[c_o+1]) then unknown = true end
  end
  local keeps, until_ = F.pool_Pool_keptFrom(tk, c, c_o, in_, d, ring)
  if keeps ~= 0 then policy, policyOn, at = keeps, c[c_o+5], at > until_ and at or until_ end
 end
 if policy ~= 0 then code, on, unknown = policy, policyOn, false end
 local v = F.pool_Pool_pausesAllow(tk[12], tk[14])
 if v[1] == 0 and (v[2] ~= 3 or (v[3] >= at and not unknown)) then
  code, unknown = F.pool_holdCode(v[2]), false
  at = at > v[3] and at or v[3]
 end
 if at >= 9007199254740992 then at, unknown = once[1], true end
 reason[1] = code
 if on >= 0 then reason[3] = (S_limits[on+1] or ld(S_limits, on+1))[1] end
 if at > once[1] and not unknown then reason[4] = at end
 return copy_(reason, 0, 4), at
end
F.policy_Gap = function(amount, size, window) return ceil((amount * window) / size) end -- internal/policy/pace.go:19
F.meter_Meter_add = function(m, d, r, t, amount) -- internal/meter/charge.go:91
 F.meter_Ring_arrive(r, t, amount)
 if d[1] == 0 then
  F.meter_Ring_sent(r, d, t, amount)
  F.meter_Meter_fill(m, d, r, amount)
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then
  local t1_, t1_o = F.meter_Ring_at(r, (t - fmod(t, d[5])) / d[5])
  t1_[t1_o+1] = t1_[t1_o+1] + amount
  m[5] = m[5] + amount
 else
  m[5] = m[5] + amount
  if t >= m[7] then m[6] = m[6] + amount end
 end
end
F.meter_Meter_chargeAt = function(m, d, r, c, c_o, mark) -- internal/meter/charge.go:109
 c[c_o+3], c[c_o+2] = 2, mark
 if d[1] == 0 then
  local slice = (mark - fmod(mark, d[5])) / d[5]
  if r[3] == 0 or slice < r[1] then r[1] = slice end
  local t1_, t1_o = F.meter_Ring_at(r, slice)
  t1_[t1_o+1] = t1_[t1_o+1] + c[c_o+1]
  r[3] = r[3] + c[c_o+1]
  m[4] = m[4] + c[c_o+1]
  return 
 end
 F.meter_Meter_add(m, d, r, mark, c[c_o+1])
end
F.meter_Meter_hold = function(m, d, amount) -- internal/meter/charge.go:80
 m[4] = m[4] + amount
 if (d[1] == 2 and m[8] ~= 0) then m[5] = m[5] + amount end
end
F.meter_Ring_lower = function(r, from, to, amount) -- internal/meter/ring.go:100
 local k = max((from - fmod(from, 30000000)) / 30000000, ((to - fmod(to, 30000000)) / 30000000) - 8 + 1)
 while r ~= nil and k <= ((to - fmod(to, 30000000)) / 30000000) do
  local m, m_o = r, (fmod(k, 8))*2+8
  if m[m_o+1] == k then m[m_o+2] = max(m[m_o+2] - amount, 0) end
  k = k + 1
 end
end
F.meter_Meter_Advance = function(m, d, r, t) -- internal/meter/meter.go:105
 if d[1] == 0 then
  if r ~= nil and r[3] > 0 then F.meter_Meter_settlePending(m, d, r, t) end
  F.meter_Meter_drain(m, d, t)
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then F.meter_Meter_expire(m, d, r, t)
 elseif (d[1] == 2 and t >= m[8]) then
  local passed = quo(t - m[8], d[4]) + 1
  m[5] = m[4]
  if passed == 1 then m[5] = m[5] + m[6] end
  m[6], m[9] = 0, 0
  m[10] = m[7] + mul(passed - 1, d[4])
  m[7] = m[7] + mul(passed, d[4])
  m[8] = m[8] + mul(passed, d[4])
 end
 if r ~= nil then F.meter_Ring_regain(r, t) end
end
F.meter_Meter_Room = function(m, d, r) -- internal/meter/meter.go:72
 if m[1] == 0 then return 1099511627776 end
 return (((r == nil or r[5] == 0) and m[1] or F.meter_Meter_less(m, r[5])) - ((d[9] == 0) and 0 or quo(mul(m[1], d[9]), 4096))) - F.meter_Meter_Used(m, d, r)
end
F.pool_headerTime_slowerThan = function(h, h_o, d, r) -- internal/pool/header.go:39
 return h[h_o+18] > 0 and d[2] == 0 and h[h_o+18] > (2 * ((r == nil or r[4] == 0) and d[6] or r[4]))
end
F.policy_Pace_AllowsAll = function(p, t, amount, size, window) -- internal/policy/pace.go:32
 return (p[1] > t and p[1] or t) + (ceil((amount * window) / size)) < t + F.policy_Gap(max((size - fmod(size, 20)) / 20, 1), size, window)
end
F.policy_Breaker_Sent = function(b, b_o, t) -- internal/policy/breaker.go:204
 if b[b_o+9] ~= 0 and t - b[b_o+13] < 10000000 then b[b_o+14] = b[b_o+14] + 1 end
end
F.pool_Pool_past = function(s) return s[5] == 0 and s[8] == 0 and once[1] - s[3] >= 600000000 end -- internal/pool/sessions.go:185
F.pool_Pool_unstated = function(tk, o) -- internal/pool/fast.go:258
 local n = 0
 for limit = 0, cfg[4] - 1 do if o[limit+6] > 0 then n = n + 1 end end
 for k = 0, tk[25] - 1 do if o[tk[(k)*5+40]+6] > 0 then n = n - 1 end end
 return n > 0
end
F.pool_Pool_bindFast = function(in_, s, c, c_o) -- internal/pool/fast.go:274
 if (c[c_o+3] == 1 and s[5] == 1) then
  s[11] = s[11] + c[c_o+1]
  s[12] = s[12] + c[c_o+1]
  c[c_o+3], c[c_o+2] = 0, once[1]
 elseif (c[c_o+3] ~= 0 and s[5] ~= 4) then
  F.pool_Pool_enterSums(s)
  local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
  F.meter_Meter_Bind(in_, d, r, once[1], c, c_o)
  F.pool_sums_leaves(s, F.meter_Meter_Room(in_, d, r))
 end
end
F.pool_Pool_noted = function(tk) -- internal/pool/history.go:176
 local pd = S_hperiods[tk[35]] or ld(S_hperiods, tk[35])
 if (pd[1] ~= tk[10] and pd[1] ~= once[113]) or (pd[2] ~= tk[12] and pd[2] ~= once[113]) or pd[3] ~= (((tk[4] - fmod(tk[4], 60000000)) / 60000000) % 4294967296) then
  return nil
 end
 return pd
end
F.pool_Pool_keptLess = function(s, in_, class, granted, amount) -- internal/pool/fast.go:338
 if s[6] == 2 then F.pool_Pool_tookLess(class, granted, in_, amount)
 elseif class > 0 then s[14] = s[14] - amount end
end
F.pool_Pool_closeFast = function(tk, in_, s, c, c_o, actual, pd) -- internal/pool/fast.go:296
 if s[5] == 4 then
  if c[c_o+3] == 1 then
   s[11] = s[11] + c[c_o+1]
   s[2] = s[2] + c[c_o+1]
  end
  return 
 end
 if c[c_o+3] == 0 and actual == c[c_o+1] then return end
 local more = F.pool_Pool_settleFast(in_, s, c, c_o, actual, tk[27] ~= 0)
 if more == 0 then return end
 if s[8] >= 0 and pd ~= nil then pd[s[8]+12] = max(pd[s[8]+12] + more, 0) end
 if s[6] ~= 0 then F.pool_Pool_keptLess(s, in_, tk[24], tk[4], -more) end
end
F.pool_Pool_endFast = function(t, tk) -- internal/pool/fast.go:348
 F.pool_wheel_remove(once, 133, tk)
 if tk[10] ~= 0 then F.flat_Names_Drop(tk[10]) end
 if tk[12] ~= 0 then
  if tk[12] ~= 0 then F.flat_Names_Drop(tk[12]) end
  tk[12] = 0
 end
 if bor(bor(tk[11], tk[13]), tk[14]) ~= 0 then
  if tk[11] ~= 0 then F.flat_Names_Drop(tk[11]) end
  if tk[13] ~= 0 then F.flat_Names_Drop(tk[13]) end
  if tk[14] ~= 0 then F.flat_Names_Drop(tk[14]) end
  tk[11], tk[13], tk[14] = 0, 0, 0
 end
 F.pool_Pool_strikeOut(t, tk, 0)
 local s = S_sessions[tk[16]] or ld(S_sessions, tk[16])
 s[5] = s[5] - 1
 if tk[34] == 2 then s[7] = s[7] - 1 end
 s[3] = once[1]
 once[5] = once[5] - 1
 tk[23], tk[25], tk[4], tk[8], tk[35] = 0, 0, 0, 0, 0
 tk[27], tk[26], tk[31] = 0, 0, 0
 slabRecycle(S_tickets, t)
end
F.pool_Pool_answersOf = function(model) -- internal/pool/answers.go:37
 do
  local i = once[147]
  if i ~= 0 and (S_answers[i] or ld(S_answers, i))[1] == model then return S_answers[i] or ld(S_answers, i) end
 end
 local oldest, i = 0, 1
 while i < slabEnd(S_answers) do
  local a = S_answers[i] or ld(S_answers, i)
  if a[1] == model then
   once[147] = i
   return a
  end
  if a[1] ~= once[113] and (oldest == 0 or a[3] < (S_answers[oldest] or ld(S_answers, oldest))[3]) then oldest = i end
  i = i + 1
 end
 if slabLen(S_answers) < 16 or (model == once[113] and slabLen(S_answers) == 16) then once[147] = slabNew(S_answers)
 elseif (S_answers[oldest] or ld(S_answers, oldest))[3] > once[1] - 70000000 then
  return F.pool_Pool_answersOf(once[113])
 else once[147] = oldest end
 local a = S_answers[once[147]] or ld(S_answers, once[147])
 if a[1] ~= 0 then F.flat_Names_Drop(a[1]) end
 if a[2] ~= 0 then F.flat_Names_Drop(a[2]) end
 clear_(a, 0, 39)
 a[1] = model ~= 0 and F.flat_Names_Keep(model) or 0
 return a
end
F.pool_answers_span = function(a, now_) -- internal/pool/answers.go:68
 local at = ((now_ - fmod(now_, 10000000)) / 10000000) % 4294967296
 local s, s_o = a, ((at % 7))*5+4
 if s[s_o+1] ~= at then s[s_o+1], s[s_o+2], s[s_o+3], s[s_o+4], s[s_o+5] = at, 0, 0, 0, 0 end
 return s, s_o
end
F.pool_Pool_usedLess = function(l, k, unit, less) -- internal/pool/tallies.go:128
 local t = T[7][l[28][k+1]+1]
 if t[5] == 0 or t[2] ~= l[23] or t[3] ~= l[19] then
  if l[19] ~= past[2] then
   F.pool_Pool_usedLessBefore(l, t, unit, less)
   return 
  end
  F.pool_Pool_tell(t, l[23])
 end
 t[unit+15] = t[unit+15] - less
 if t[7] == 0 then F.pool_Pool_mark(t) end
end
F.pool_Pool_settleHeld = function(l, in_, s, gone, less, bound) -- internal/pool/lotends.go:197
 if gone == 0 then return end
 s[11] = s[11] + gone
 s[2] = s[2] + less
 if bound then
  s[12] = s[12] + gone
  s[13] = s[13] + less
 else s[12] = s[12] + (gone - less) end
 if less ~= 0 and s[6] ~= 0 then F.pool_Pool_keptLess(s, in_, l[8], l[17], less) end
end
F.pool_Pool_settleOdd = function(l, e, k, limit, in_, s, amount, actual) -- internal/pool/lotends.go:215
 local c = {amount,l[32][limit+1],l[31][limit+1] % 256}
 if l[29][k+1] > 0 and c[3] == 1 and s[7] == 0 then c[2], c[3] = l[29][k+1], 0 end
 if c[3] == 0 and actual == amount then return end
 local more = F.pool_Pool_settleFast(in_, s, c, 0, actual, e[3] ~= 0 or l[29][k+1] > 0)
 if more == 0 then return end
 if s[8] >= 0 then F.pool_Pool_usedLess(l, k, s[8], -more) end
 if s[6] ~= 0 then F.pool_Pool_keptLess(s, in_, l[8], l[17], -more) end
end
F.pool_wheel_add = function(w, w_o, i, t) -- internal/pool/wheel.go:26
 local s = max((quo(t[6] + 100000 - 1, 100000)), w[w_o+1] + 1)
 t[6] = s * 100000
 if t[6] <= once[1] + 10000000 + 100000 and (w[w_o+6] == 0 or (S_tickets[w[w_o+6]] or ld(S_tickets, w[w_o+6]))[6] <= t[6]) then
  t[19], t[20], t[21] = -1, w[w_o+6], 0
  if w[w_o+6] ~= 0 then
   local t1_ = (S_tickets[w[w_o+6]] or ld(S_tickets, w[w_o+6]))
   t1_[21] = i
  else w[w_o+5] = i end
  w[w_o+6] = i
  return 
 end
 t[19] = ((s % 4096) + 2147483648) % 4294967296 - 2147483648
 local slot, slot_o = w.slots, t[19]
 t[20], t[21] = 0, slot[slot_o+1]
 if slot[slot_o+1] ~= 0 then
  local t2_ = (S_tickets[slot[slot_o+1]] or ld(S_tickets, slot[slot_o+1]))
  t2_[20] = i
 end
 slot[slot_o+1] = i
 w[w_o+4] = w[w_o+4] + 1
 if w[w_o+4] == 1 or s < w[w_o+3] then w[w_o+3] = s end
end
F.pool_Pool_findPeriod = function(rec, from, model, at) -- internal/pool/history.go:248
 local found, crowded, looks, others, i = 0, false, 0, 0, from
 while i ~= 0 and looks <= 64 do
  local pd = S_hperiods[i] or ld(S_hperiods, i)
  if pd[1] ~= rec[1] or pd[3] ~= at then break end
  if pd[2] == model then return i, false end
  if pd[2] == once[113] then others = i end
  i = pd[4]
  looks = looks + 1
 end
 if looks >= 64 then return others, true end
 return 0, false
end
F.pool_history_full = function(at) -- internal/pool/history.go:231
 local n, i = slabLen(S_hperiods), past[1]
 if i == 0 then i = (n + 2147483648) % 4294967296 - 2147483648 end
 i = i - 16383
 if i < 1 then
  if n < 32768 then return false end
  i = i + 32768
 end
 return (S_hperiods[i] or ld(S_hperiods, i))[3] == at
end
F.pool_Pool_newPeriod = function() -- internal/pool/history.go:271
 if slabLen(S_hperiods) < 32768 then return slabNew(S_hperiods) end
 past[1] = fmod(past[1], 32768) + 1
 local pd = S_hperiods[past[1]] or ld(S_hperiods, past[1])
 if pd[1] ~= 0 then F.flat_Names_Drop(pd[1]) end
 if pd[2] ~= 0 then F.flat_Names_Drop(pd[2]) end
 return past[1]
end
F.pool_Pool_until = function(rec, at) -- internal/pool/history.go:218
 local i, looks = rec[8], 0
 while i ~= 0 and looks <= 64 do
  local pd = S_hperiods[i] or ld(S_hperiods, i)
  if pd[1] ~= rec[1] or pd[3] <= at then break end
  i = pd[4]
  looks = looks + 1
 end
 return i
end
F.meter_Meter_Release = function(m, d, c, c_o) -- internal/meter/charge.go:212
 if d[1] == 3 and c[c_o+3] == 1 then
  m[4] = m[4] - c[c_o+1]
  c[c_o+3] = 0
 end
end
F.meter_Meter_Orphan = function(m, d, r, t, c, c_o, proven) -- internal/meter/charge.go:178
 if c[c_o+3] ~= 1 or d[1] == 3 or (d[2] == 1 and not proven) then return end
 if d[2] == 2 then
  F.meter_Meter_Bind(m, d, r, t, c, c_o)
  return 
 end
 F.meter_Meter_takeOut(m, d, r, c[c_o+1], c, c_o)
 F.meter_Meter_chargeAt(m, d, r, c, c_o, t + ((r == nil or r[4] == 0) and d[6] or r[4]))
end
F.order_Queue_Remove = function(w) -- internal/order/queue.go:286
 local wt = copy_((S_qwaiters[w] or ld(S_qwaiters, w)), 0, 7)
 local fl = S_qflows[wt[1]] or ld(S_qflows, wt[1])
 local l, m = (S_qlanes[fl[10]] or ld(S_qlanes, fl[10])), (S_qmembers[fl[9]] or ld(S_qmembers, fl[9]))
 F.order_Queue_count(l, m, -1, -wt[6])
 local wasFirst = fl[11] == w
 if wt[2] ~= 0 then
  local t1_ = (S_qwaiters[wt[2]] or ld(S_qwaiters, wt[2]))
  t1_[3] = wt[3]
 else fl[11] = wt[3] end
 if wt[3] ~= 0 then
  local t2_ = (S_qwaiters[wt[3]] or ld(S_qwaiters, wt[3]))
  t2_[2] = wt[2]
 else fl[12] = wt[2] end
 slabRecycle(S_qwaiters, w)
 if wasFirst then
  F.order_Queue_leave(wt[1])
  if fl[11] ~= 0 then F.order_Queue_enter(wt[1]) end
 end
 local member = fl[9]
 if fl[11] == 0 then F.order_Queue_dropFlow(wt[1]) end
 local pt, pt_o = l, (m[10])*39+33
 if m[6] == 0 then
  F.order_Queue_activate(l, m[10], -1)
  F.order_Queue_enterIdle(member)
  F.order_Queue_forget(pt, pt_o)
 end
 F.order_part_level(pt, pt_o)
 if counts[3] == 0 then F.order_Queue_rest() end
end
F.pool_Pool_unqueue = function(tk) -- internal/pool/acquire.go:61
 tk[17] = 0
 local t1_ = (S_sessions[tk[16]] or ld(S_sessions, tk[16]))
 t1_[6] = t1_[6] - 1
 for k = 0, tk[25] - 1 do
  local t3_ = (S_insts[tk[(k)*5+39]] or ld(S_insts, tk[(k)*5+39]))
  t3_[22] = t3_[22] - tk[(k)*5+36]
 end
end
F.pool_Pool_dropNames = function(n, n_o) -- internal/pool/ticket.go:69
 if n[n_o+1] ~= 0 then F.flat_Names_Drop(n[n_o+1]) end
 if bor(bor(bor(n[n_o+2], n[n_o+3]), n[n_o+4]), n[n_o+5]) ~= 0 then
  if n[n_o+2] ~= 0 then F.flat_Names_Drop(n[n_o+2]) end
  if n[n_o+3] ~= 0 then F.flat_Names_Drop(n[n_o+3]) end
  if n[n_o+4] ~= 0 then F.flat_Names_Drop(n[n_o+4]) end
  if n[n_o+5] ~= 0 then F.flat_Names_Drop(n[n_o+5]) end
 end
end
F.meter_Meter_Refund = function(m, d, r, t, c, c_o) -- internal/meter/charge.go:220
 F.meter_Meter_reduce(m, d, r, t, c, c_o, c[c_o+1])
 c[c_o+1], c[c_o+3] = 0, 0
end
F.pool_Pool_tookLess = function(class, granted, in_, amount) -- internal/pool/stock.go:105
 local d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
 if d[1] == 2 then
  local st = F.pool_Pool_stockOf(in_)
  if in_[8] == 0 or granted >= in_[10] then st[class+2] = max(st[class+2] - amount, 0) end
 elseif (d[1] == 1 and class > 0 and in_[1] > 0 and cfg[28] ~= 0) then
  F.policy_Pace_Refund((S_paces[in_[18]] or ld(S_paces, in_[18])), once[1], amount, in_[1], d[4])
 end
end
F.pool_Pool_unsent = function(tk) -- internal/pool/history.go:131
 local waited = tk[4] - tk[3]
 F.pool_caller_uncount(F.pool_Pool_callerFor(tk), waited, tk[26] ~= 0)
 F.pool_caller_uncount(sum, waited, tk[26] ~= 0)
 local pd = F.pool_Pool_noted(tk)
 if pd ~= nil then
  pd[5] = pd[5] - 1
  pd[11] = pd[11] - waited
  if tk[26] ~= 0 then pd[6] = pd[6] - 1 end
  for k = 0, tk[25] - 1 do F.pool_Pool_settled(tk, tk, (k)*5+35, -tk[(k)*5+36]) end
 end
end
F.pause_State_Lost = function(g, t, ticket, unsent) -- internal/pause/pause.go:328
 F.pause_State_pass(g, t)
 if (g[1] ~= 2 and g[1] ~= 1) or g[6] ~= ticket then return end
 g[6] = 0
 if g[1] == 1 then
  if unsent then g[9] = t end
  return 
 end
 if unsent then return end
 g[9] = t + 2000000
 g[7] = g[7] + 1
 if g[7] >= 3 then F.pause_State_ramp(g, t, 0) end
end
F.meter_Meter_Lapse = function(m, d, r, due, c, c_o) -- internal/meter/charge.go:151
 F.meter_Meter_Advance(m, d, r, due)
 if c[c_o+3] == 1 and (d[1] == 1 or (d[1] == 2 and m[8] == 0)) and not F.meter_Ring_live(r, d, due) then
  m[4] = m[4] - c[c_o+1]
  c[c_o+3], c[c_o+2] = 0, due
  return 
 end
 F.meter_Meter_Bind(m, d, r, due, c, c_o)
end
F.pool_Pool_keepFor = function(in_) -- internal/pool/crowd.go:114
 if in_[13] == 0 then return 60
 elseif 2 * once[in_[11]+65] > F.pool_Pool_mostMeters(in_[11]) then return 600 end
 return 4294967295
end
F.pool_Pool_touch = function(i) -- internal/pool/insts.go:264
 local in_ = S_insts[i] or ld(S_insts, i)
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 F.meter_Meter_Advance(in_, d, r, once[1])
 return in_, d, r
end
F.pool_Pool_strike = function(limit, i) -- internal/pool/crowd.go:76
 if (S_limits[limit+1] or ld(S_limits, limit+1))[7] == 0 then return end
 once[limit+65] = once[limit+65] - 1
 if once[limit+81] == i then once[limit+81] = 0 end
end
F.pool_Pool_sweepSession = function() -- internal/pool/sessions.go:201
 local s = S_sessions[once[24]] or ld(S_sessions, once[24])
 if s[3] == 0 or not (s[5] == 0 and s[8] == 0 and once[1] - s[3] >= 600000000) then return end
 once[28] = once[28] > s[2] and once[28] or s[2]
 indexRemove(X.sessIx, F.pool_sessionHash(s[1]), once[24])
 slabFree(S_sessions, once[24])
 once[27] = 0
end
F.pool_Pool_setShare = function(m, share) -- internal/pool/members.go:184
 once[153] = once[153] + (((share == 0) and 0 or (4503599627370496 - fmod(4503599627370496, share)) / share) - F.pool_partOf(m[5]))
 m[5] = share
end
F.pool_Pool_setPart = function(limit, part) -- internal/pool/members.go:327
 local t1_ = (S_defs[limit+1] or ld(S_defs, limit+1))
 once[limit+158], t1_[9] = part, part
 once[157] = once[157] + 1
 cfg[86] = once[157]
 once[9] = 1
end
F.meter_Meter_Rerate = function(m, d) -- internal/meter/withheld.go:34
 if d[1] == 0 then
  m[6] = 0
  F.meter_Meter_clamp(m, d)
 end
end
F.pause_State_ramp = function(g, t, probe) -- internal/pause/pause.go:186
 g[1], g[6] = 3, 0
 F.pause_ramp_begin(g, 10, t, probe)
end
F.pause_ramp_pass = function(r, r_o, t) -- internal/pause/ramp.go:84
 if r[r_o+2] == 0 then return end
 local steps = quo(t - r[r_o+2], 500000)
 local k = min(steps - r[r_o+8], 4)
 while k > 0 do
  local i = 3
  while i > 0 do
   r[r_o+i+9] = r[r_o+(i - 1)+9]
   i = i - 1
  end
  r[r_o+9] = r[r_o+4]
  k = k - 1
 end
 r[r_o+8] = steps > r[r_o+8] and steps or r[r_o+8]
end
F.pause_ramp_over = function(r, r_o, t) -- internal/pause/ramp.go:99
 if r[r_o+1] ~= 0 then
  return r[r_o+18] == 0 and (min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4])))) >= 5000
 end
 return r[r_o+2] ~= 0 and t - r[r_o+2] >= 10000000
end
F.pause_ramp_bound = function(r, r_o) -- internal/pause/ramp.go:136
 local at, n = 0, (r[r_o+17] + r[r_o+4] - r[r_o+16]) - r[r_o+18]
 if r[r_o+18] > 0 and n >= 0 then at = F.pause_ramp_nth(r, r_o, n) + r[r_o+19] end
 if r[r_o+20] ~= 0 and r[r_o+3] ~= 0 then
  at = max(at, r[r_o+3] + ((r[r_o+19] - fmod(r[r_o+19], r[r_o+18])) / r[r_o+18]))
 end
 return at
end
F.pool_Pool_callerOf = function(agent) -- internal/pool/crowd.go:126
 if (S_names[agent] or ld(S_names, agent))[2] == 0 and slabLen(S_crecs) >= 32768 then agent = once[113] end
 return F.pool_callers_of(agent)
end
F.pool_Pool_heard = function(caller, class) -- internal/pool/leases.go:27
 local rec = S_crecs[caller] or ld(S_crecs, caller)
 rec[9], rec[2] = class, (floor(once[1] / 2^(20)) % 4294967296)
 if cfg[49] > 0 then once[class+11] = max(once[class+11], once[1] + cfg[49]) end
end
F.pool_Pool_askedOf = function(amounts, limit) -- internal/pool/acquire.go:84
 if (band(once[130], (1 * 2^(limit))) ~= 0) then return 0 end
 local n, _ = F.store_AmountOf(amounts, (S_limits[limit+1] or ld(S_limits, limit+1)))
 return n
end
F.pool_Pool_instOf = function(limit, who, who_o) -- internal/pool/insts.go:176
 local per = (S_limits[limit+1] or ld(S_limits, limit+1))[7]
 if per == 0 then return unscoped[limit][1] end
 local scope = F.pool_scoped(who, who_o, per)
 do
  local i = F.pool_Pool_findInst(limit, scope, 0)
  if i ~= 0 then return i end
 end
 F.pool_Pool_sweepSome(2)
 if F.pool_Pool_crowded(limit) then
  local i = once[limit+81]
  if i ~= 0 then return i end
  scope = F.pool_Pool_crowdScope(per)
 end
 local i, err = F.pool_Pool_newInst(limit, scope, 0)
 if err and true or false then error("sluice: broken: internal/pool/insts.go:194") end
 return i
end
F.pool_inst_room = function(in_, d, r, amount) -- internal/pool/insts.go:289
 local room = F.meter_Meter_Room(in_, d, r)
 if room < amount and F.meter_Meter_Used(in_, d, r) == 0 and amount <= in_[1] - ((d[9] == 0) and 0 or quo(mul(in_[1], d[9]), 4096)) then
  return amount
 end
 return room
end
F.pool_Pool_keptFrom = function(tk, c, c_o, in_, d, r) -- internal/pool/stock.go:150
 if band(cfg[52], (1 * 2^(c[c_o+5]))) == 0 or tk[31] ~= 0 or in_[1] == 0 then return 0, 0
 elseif ((d[1] == 2 and in_[8] ~= 0)) then return F.pool_Pool_keptOfStock(tk, c, c_o, in_, d, r)
 elseif (d[1] == 1 and tk[24] > 0 and cfg[28] ~= 0 and (cfg[49] > 0 and (once[1] < once[0+11] or F.order_Queue_Waiting(0 + 1) > 0 or (0 == 0 and (counts[0+5]) > 0))) and not F.pool_Pool_rivalWants(c[c_o+4])) then
  local at = F.policy_Pace_Allow((S_paces[in_[18]] or ld(S_paces, in_[18])), once[1], c[c_o+1], in_[1], d[4])
  if at > once[1] then return 13, min(at, F.pool_Pool_deathOf(0)) end
 end
 if F.pool_Pool_binds(in_, d) then return F.pool_Pool_keptOfFlow(tk, c, c_o, in_, d, r) end
 return 0, 0
end
F.pool_Pool_meterOf = function(c, c_o) -- internal/pool/insts.go:272
 local u = unscoped[c[c_o+5]]
 if u[2] ~= nil then return u[2], F.pool_Pool_defOf(u[2]), u[3] end
 local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
 return in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
end
F.meter_Meter_Take = function(m, d, r, t, amount, slow) -- internal/meter/charge.go:22
 local c = {amount,t,0}
 if d[1] == 3 then
  c[3] = 1
  m[4] = m[4] + amount
 elseif (d[2] == 2 and d[3] == 0) then F.meter_Meter_add(m, d, r, t, amount)
 elseif (d[2] == 0 and slow and d[3] == 0) then
  F.meter_Meter_chargeAt(m, d, r, c, 0, t + ((r == nil or r[4] == 0) and d[6] or r[4]))
 else
  c[3] = 1
  F.meter_Meter_hold(m, d, amount)
 end
 return copy_(c, 0, 3)
end
F.pool_Pool_pausesSent = function(t, tk) -- internal/pool/pauses.go:147
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if ((band(g[35], 4) == 0 or g[36] == tk[12]) and (band(g[35], 16) == 0 or g[37] == tk[14])) then
   F.pause_State_Sent(g, once[1], t)
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
end
F.pool_Pool_sent = function(tk) -- internal/pool/history.go:103
 local waited, retried = once[1] - tk[3], 0
 if tk[26] ~= 0 then retried = 1 end
 local rec = F.pool_Pool_callerFor(tk)
 F.pool_caller_count(rec, once[1], past[3], 1, retried)
 rec[11] = rec[11] + waited
 F.pool_caller_count(sum, once[1], past[3], 1, retried)
 sum[11] = sum[11] + waited
 tk[35] = F.pool_Pool_periodOf(rec, tk[12], past[2])
 local pd = S_hperiods[tk[35]] or ld(S_hperiods, tk[35])
 pd[5] = pd[5] + 1
 pd[11] = pd[11] + waited
 pd[9] = pd[9] > rec[4] and pd[9] or rec[4]
 pd[10] = pd[10] > sum[4] and pd[10] or sum[4]
 pd[6] = pd[6] + retried
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local u = cfg[c[c_o+5]+33]
  if u >= 0 then pd[u+12] = pd[u+12] + c[c_o+1] end
 end
end
F.pool_Pool_regrant = function(tk) -- internal/pool/acquire.go:189
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  local amount, in_, d, r = c[c_o+1], F.pool_Pool_touchCharge(c, c_o)
  F.meter_Meter_Refund(in_, d, r, once[1], c, c_o)
  move(c, c_o, (F.meter_Meter_Take(in_, d, r, once[1], amount, (once[29+18] > 0 and d[2] == 0 and once[29+18] > (2 * ((r == nil or r[4] == 0) and d[6] or r[4]))))), 0, 3)
 end
 tk[4] = once[1]
end
F.pool_Pool_costs = function(tk) -- internal/pool/acquire.go:122
 local c = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}
 for k = 0, tk[25] - 1 do
  local ch, ch_o = tk, (k)*5+35
  if band(cfg[61], (1 * 2^(ch[ch_o+5]))) ~= 0 then
   c[c[33]+1], c[c[33]+17] = ch[ch_o+4], 1
   local in_ = S_insts[ch[ch_o+4]] or ld(S_insts, ch[ch_o+4])
   if in_[1] > 0 then c[c[33]+17] = quo(min(ch[ch_o+1], 4 * in_[1]) * 1048576 + in_[1] - 1, in_[1]) end
   c[33] = c[33] + 1
  end
 end
 if c[33] == 0 then c[17], c[33] = 1, 1 end
 return copy_(c, 0, 33)
end
F.order_Queue_Push = function(at, ticket, costs, front) -- internal/order/queue.go:212
 local f = F.order_Queue_flowOf(at, costs)
 local fl, cost, lead = S_qflows[f] or ld(S_qflows, f), F.order_Costs_largest(costs)
 local w = slabNew(S_qwaiters)
 local t1_ = (S_qwaiters[w] or ld(S_qwaiters, w))
 t1_[1], t1_[2], t1_[3], t1_[4], t1_[5], t1_[6], t1_[7] = f, fl[12], 0, ticket, F.order_Queue_number(front), cost, lead
 local l, m = (S_qlanes[fl[10]] or ld(S_qlanes, fl[10])), (S_qmembers[fl[9]] or ld(S_qmembers, fl[9]))
 local pt, pt_o = l, (at[8])*39+33
 if pt[pt_o+36] == 0 then
  for i = 0, l[20] - 1 do
   pt[pt_o+(i)*2+1] = max((S_qdomains[l[i+4]] or ld(S_qdomains, l[i+4]))[1], pt[pt_o+(i)*2+2])
  end
 end
 if m[6] == 0 then
  m[1] = pt[pt_o+33] > m[2] and pt[pt_o+33] or m[2]
  F.order_Queue_activate(l, at[8], 1)
  F.order_Queue_leaveIdle(fl[9])
 end
 F.order_Queue_count(l, m, 1, cost)
 if fl[11] == 0 then
  fl[11], fl[12] = w, w
  F.order_Queue_enter(f)
 elseif front then
  F.order_Queue_leave(f)
  local next_, wt = S_qwaiters[fl[11]] or ld(S_qwaiters, fl[11]), S_qwaiters[w] or ld(S_qwaiters, w)
  wt[2], wt[3] = 0, fl[11]
  next_[2], fl[11] = w, w
  F.order_Queue_enter(f)
 else
  local t3_ = (S_qwaiters[fl[12]] or ld(S_qwaiters, fl[12]))
  t3_[3] = w
  fl[12] = w
 end
 return w
end
F.pool_Pool_position = function(t) -- internal/pool/ticket.go:180
 local at = {0,0,0,t[10],0,0,0,(t[24] + 1) % 256}
 if t[31] ~= 0 then at[8] = 0 end
 if band(once[6], 4) ~= 0 then at[1] = F.pool_Pool_laneName(t, 4, t[12]) end
 if band(once[6], 16) ~= 0 then at[2] = F.pool_Pool_laneName(t, 16, t[14]) end
 for k = 0, t[25] - 1 do
  local bit_ = 1 * 2^(t[(k)*5+40])
  if band(cfg[61], bit_) ~= 0 then at[3] = bor(at[3], bit_)
  else at[7] = bor(at[7], bit_) end
 end
 if band(cfg[5], 2) ~= 0 then at[5] = t[11] end
 if band(cfg[5], 8) ~= 0 then at[6] = t[13] end
 return copy_(at, 0, 8)
end
F.order_Queue_IsFirst = function(w) -- internal/order/queue.go:205
 return (S_qflows[(S_qwaiters[w] or ld(S_qwaiters, w))[1]] or ld(S_qflows, (S_qwaiters[w] or ld(S_qwaiters, w))[1]))[11] == w
end
F.pool_wheel_leave = function(w, w_o, t) -- internal/pool/wheel.go:72
 if t[20] ~= 0 then
  local t1_ = (S_tickets[t[20]] or ld(S_tickets, t[20]))
  t1_[21] = t[21]
 else w[w_o+5] = t[21] end
 if t[21] ~= 0 then
  local t2_ = (S_tickets[t[21]] or ld(S_tickets, t[21]))
  t2_[20] = t[20]
 else w[w_o+6] = t[20] end
 t[6], t[20], t[21] = 0, 0, 0
end
F.meter_Meter_takeOut = function(m, d, r, amount, c, c_o) -- internal/meter/charge.go:295
 if d[1] == 3 then m[4] = m[4] - amount
 elseif (d[1] == 2 and m[8] ~= 0) then
  if c[c_o+3] == 1 then
   m[4] = m[4] - amount
   m[5] = m[5] - amount
   return 
  end
  if c[c_o+2] >= m[10] then m[5] = max(m[5] - amount, 0) end
  if c[c_o+2] >= m[7] then m[6] = max(m[6] - amount, 0) end
 elseif c[c_o+3] == 1 then m[4] = m[4] - amount
 elseif d[1] == 0 then
  local t1_, t1_o = F.meter_Ring_at(r, (c[c_o+2] - fmod(c[c_o+2], d[5])) / d[5])
  t1_[t1_o+1] = t1_[t1_o+1] - amount
  r[3] = r[3] - amount
  m[4] = m[4] - amount
 else
  if c[c_o+2] > r[105] and F.meter_Ring_live(r, d, c[c_o+2]) then
   amount = min(amount, far(1, F.meter_Ring_at(r, (c[c_o+2] - fmod(c[c_o+2], d[5])) / d[5])))
   local t2_, t2_o = F.meter_Ring_at(r, (c[c_o+2] - fmod(c[c_o+2], d[5])) / d[5])
   t2_[t2_o+1] = t2_[t2_o+1] - amount
   m[5] = m[5] - amount
  end
 end
end
F.pool_Pool_callerFor = function(tk) -- internal/pool/crowd.go:143
 local known = tk[15] < slabEnd(S_crecs)
 if known then
  local name = (S_crecs[tk[15]] or ld(S_crecs, tk[15]))[1]
  known = name == tk[10] or name == once[113]
 end
 if not known then tk[15] = F.pool_Pool_callerOf(tk[10]) end
 return S_crecs[tk[15]] or ld(S_crecs, tk[15])
end
F.pool_Pool_fail = function(op, key) -- internal/pool/trouble.go:46
 local unpaid = op[18] == 5
 if unpaid ~= (once[142] ~= 0) then F.pool_Pool_endFailures() end
 if once[140] == 0 then once[145] = once[1] end
 once[146] = once[1]
 if once[140] < 1000000 then once[140] = once[140] + 1 end
 once[141] = (once[141] ~= 0 or op[18] == 7) and 1 or 0
 once[142] = (unpaid) and 1 or 0
 local cause = op[23]
 if cause == "" then cause = F.store_Verdict_String(op[18]) end
 local old = once[143]
 once[143] = F.flat_Names_Hold(sub(cause, 1, (#cause < 256 and #cause or 256)))
 if old ~= 0 then F.flat_Names_Drop(old) end
 if unpaid then
  old = once[144]
  once[144] = key ~= 0 and F.flat_Names_Keep(key) or 0
  if old ~= 0 then F.flat_Names_Drop(old) end
 end
end
F.pool_Pool_endFailuresOf = function(key) -- internal/pool/trouble.go:29
 if once[140] > 0 and once[142] ~= 0 and once[144] ~= 0 and once[144] ~= key and once[1] - once[146] < 900000000 then
  return 
 end
 F.pool_Pool_endFailures()
end
F.pool_Pool_Index = function(name) -- internal/pool/reform.go:101
 for i = 0, cfg[4] - 1 do
  if (S_limits[i+1] or ld(S_limits, i+1))[1] == name and not (band(once[130], (1 * 2^(i))) ~= 0) then return i end
 end
 return -1
end
F.pool_Pool_learnCrowd = function(limit, o, made) -- internal/pool/crowd.go:98
 local i, l = once[limit+81], (S_limits[limit+1] or ld(S_limits, limit+1))
 local in_, d, r = F.pool_Pool_touch(i)
 if o[2] <= 0 or o[2] > 1099511627776 then return end
 local least = once[limit+97]
 if least == 0 or o[2] < least then
  once[limit+97] = o[2]
  F.pool_Pool_learnSize(i, in_, d, l, o[2])
 end
 if o[3] >= 0 and o[3] < in_[1] then F.meter_Meter_ObserveUsed(in_, d, r, once[1], made, in_[1] - o[3], true) end
end
F.pool_Pool_learnSize = function(i, in_, d, l, size) -- internal/pool/learn.go:132
 if size <= 0 or size > 1099511627776 then return end
 local burst = l[5]
 if l[4] > 0 and l[11] == 0 then
  if size < l[4] then burst = burst < size and burst or size end
  size = size < l[4] and size or l[4]
 elseif burst == 0 or burst > size then burst = size end
 local before, err = in_[1], F.meter_Meter_Resize(in_, d, size, burst)
 if not err then
  in_[13], in_[17] = 1, (floor(once[1] / 2^(20)) % 4294967296)
  F.pool_Pool_limitKnown(in_)
  if in_[1] > before then F.pool_Pool_lose(i) end
 end
end
F.pool_Pool_fit = function(in_, o, made, tk) -- internal/pool/model.go:150
 local l = (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))
 if l[2] ~= 0 or in_[15] == 0 then return end
 local own = F.pool_ticket_cost(tk, in_[11])
 local s, ok = F.pool_Pool_state(o, l, in_, made, own)
 if not ok then return end
 local m = F.pool_Pool_modelOf(in_)
 local d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
 local limit = (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1))[4]
 F.pool_model_tell(m, s, once[1])
 if d[1] == 1 then
  if s[5] > d[4] + ((s[7] ~= 0) and 50000 or 2200000) then
   F.pool_Pool_turn(in_, s[5] + ((s[7] ~= 0) and 50000 or 1200000), 0, in_[5])
  elseif (l[4] == 0 or l[11] ~= 0) then F.pool_Pool_shorten(in_, m, s) end
 elseif F.pool_statement_within(s, d[4], 2200000) then
  m[28] = 0
  F.pool_Pool_prove(m, d, s)
  if (l[4] == 0 or l[11] ~= 0) then F.pool_Pool_quicken(in_, m, s) end
 elseif F.pool_statement_within(s, limit, 2200000) then F.pool_Pool_stretch(in_, limit)
 elseif F.pool_statement_longer(s, limit) ~= 0 then F.pool_Pool_stretch(in_, F.pool_statement_longer(s, limit))
 elseif ((l[4] == 0 or l[11] ~= 0) and F.pool_Pool_quicken(in_, m, s)) then
 else
  local from, _, _ = F.pool_statement_span(s, d[4], 2200000)
  local early = s[5] < from
  if ((early or s[5] > limit + 2200000) and not F.pool_model_doubt(m)) or (early and l[4] > 0 and l[11] == 0) then
   return 
  end
  local ours, known = F.meter_Meter_MostUsed(in_, d, (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), once[1], made)
  if not known then ours = in_[1] + in_[4] end
  local recent = min(ours - in_[4], F.meter_Ring_Recent((not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), d, once[1]))
  local window = limit
  if s[5] > limit then window = s[5] + ((s[7] ~= 0) and 50000 or 1200000) end
  F.pool_Pool_turn(in_, window, s[2], max(recent - s[2], 0))
 end
 m[29] = once[1] + s[5]
end
F.pool_Pool_comesBack = function(in_, o, made, tk) -- internal/pool/model.go:300
 if in_[28] == 0 or o[4] < 0 or o[2] <= 0 or o[3] < 0 or o[3] > o[2] then return end
 local m, l = (S_models[in_[28]] or ld(S_models, in_[28])), (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))
 if m[24] == 0 or m[26] ~= 0 or m[1] ~= 1 or not (l[4] == 0 or l[11] ~= 0) then return end
 local unseen = max(in_[5] - (o[2] - o[3]), 0)
 if tk ~= nil then unseen = F.pool_Pool_unseen(in_, made, F.pool_ticket_arrived(tk, in_[11], l)) end
 local s = {0,0,0,0,0,0,(F.pool_fine(o) and 1 or 0)}
 if F.meter_Meter_Forget(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), once[1], once[1] + quo(o[4], 1000) + ((s[7] ~= 0) and 50000 or 1200000), F.pool_ticket_arrived(tk, in_[11], l), unseen) then
  m[27] = 1
 end
end
F.meter_Meter_ObserveReset = function(m, d, r, t, lo, hi) -- internal/meter/observe.go:5
 local current = false
 if d[1] ~= 2 or lo < 0 or hi < lo or not F.meter_Def_phased(d, hi - lo) or hi - t > 2 * d[4] then return false end
 if m[8] ~= 0 then
  local k = F.meter_floorDiv(lo + hi - m[7] - m[8] + d[4], 2 * d[4])
  local from, to = lo - mul(k, d[4]), hi - mul(k, d[4])
  if k > 0 then to = to < t and to or t end
  if k <= 1 and from <= m[8] and to >= m[7] then
   m[7], m[8] = from > m[7] and from or m[7], to < m[8] and to or m[8]
   F.meter_Meter_Advance(m, d, r, t)
   return k >= 0
  end
 end
 if hi <= t then
  local passed = quo(t - hi, d[4]) + 1
  lo, hi = lo + mul(passed, d[4]), hi + mul(passed, d[4])
 end
 if m[8] == 0 then F.meter_Meter_openFixed(m, d, r, lo, hi)
 else F.meter_Meter_moveReset(m, d, r, t, lo, hi) end
 return true
end
F.meter_Meter_Believe = function(m, d, used) -- internal/meter/observe.go:86
 if not (d[1] == 2 and m[8] ~= 0) or used < 0 or used > 1099511627776 then return false end
 m[5] = used + m[4]
 m[6] = 0
 m[9] = m[9] < used and m[9] or used
 return true
end
F.pool_Pool_sample = function(in_, d, r, remaining, own) -- internal/pool/learn.go:107
 if not ((d[1] == 2 and in_[8] ~= 0)) or cfg[88] == 0 then return end
 local st = F.pool_Pool_stockOf(in_)
 F.policy_Breaker_Sample(st, 9, (F.pool_Pool_rule()), once[1], remaining, in_[4] + own)
 F.pool_Pool_judgeStock(st, in_, F.meter_Meter_Room(in_, d, r))
end
F.pool_ticket_cost = function(tk, limit) -- internal/pool/learn.go:117
 if tk ~= nil then
  for k = 0, tk[25] - 1 do
   local c, c_o = tk, (k)*5+35
   if c[c_o+5] == limit then return c[c_o+1] end
  end
 end
 return 0
end
F.pool_Pool_explained = function(in_, made, used) -- internal/pool/model.go:260
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 local ours, known = F.meter_Meter_MostUsed(in_, d, r, once[1], made)
 if not known or used <= ours then return false end
 if F.pool_Pool_mayBeWindow(in_, used) then
  F.pool_Pool_turn(in_, d[4], used, 0)
  return true
 end
 if in_[28] == 0 then return false end
 local m = S_models[in_[28]] or ld(S_models, in_[28])
 if d[1] == 0 or m[27] == 0 or m[26] ~= 0 or m[19] ~= 0 then return false end
 m[26] = 1
 return true
end
F.meter_Meter_ObserveUsed = function(m, d, r, t, made, used, rough) -- internal/meter/observe.go:64
 local ours, known = F.meter_Meter_MostUsed(m, d, r, t, made)
 if not known or used <= ours or used > 1099511627776 then return end
 local more = used - ours
 if (d[1] == 2 and m[8] ~= 0) then m[5] = m[5] + more
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then
  F.meter_Meter_add(m, d, r, t, more)
  m[10] = t
 else F.meter_Meter_add(m, d, r, t, more) end
 if not rough then m[9] = m[9] + more end
end
F.pool_Pool_contradicts = function(in_, o, whole) -- internal/pool/follow.go:150
 if in_[5] < whole - ((whole - fmod(whole, 4)) / 4) or whole - o[3] > ((whole - fmod(whole, 4)) / 4) or whole < 2 or o[4] < 0 then
  if in_[28] ~= 0 then
   local t1_ = (S_models[in_[28]] or ld(S_models, in_[28]))
   t1_[21] = 0
  end
  return 
 end
 local m = F.pool_Pool_modelOf(in_)
 m[21] = min(m[21] + 1, 100)
 m[22], m[23] = o[3], quo(o[4], 1000)
end
F.pool_Pool_follow = function(in_, o, made, tk) -- internal/pool/follow.go:112
 local l = (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 if in_[28] == 0 or r == nil or l[2] ~= 0 or not (l[4] == 0 or l[11] ~= 0) or (l[4] > 0 and l[11] == 0 and l[5] ~= l[4]) or o[2] ~= in_[1] or o[4] < 0 then
  return 
 end
 local m = S_models[in_[28]] or ld(S_models, in_[28])
 if m[26] ~= 0 or m[20] >= 2 then return end
 F.meter_Ring_Follow(r, once[1], (once[47] - fmod(once[47], 8)) / 8)
 local own = F.pool_ticket_arrived(tk, in_[11], l)
 local unseen = F.pool_Pool_unseen(in_, made, own)
 if unseen < 0 then return end
 local used = max(o[2] - o[3], own)
 if l[12] ~= 0 and o[2] >= 10000 then used = used + 1000 end
 if in_[5] <= used + unseen then return end
 local need = 3
 if m[20] > 0 then need = 30 end
 if m[18] < need then
  m[18] = m[18] + 1
  return 
 end
 F.meter_Meter_Sync(in_, d, r, once[1], used + unseen)
 m[19] = 1
end
F.pause_State_Succeeded = function(g, t, granted, ticket) -- internal/pause/pause.go:309
 F.pause_State_pass(g, t)
 if granted <= g[3] then return end
 g[4], g[5] = 0, 0
 if (g[1] == 2 or g[1] == 1) and g[6] == ticket then
  g[2] = g[2] < t and g[2] or t
  F.pause_State_ramp(g, t, g[8])
  return 
 end
 if g[1] == 3 and granted >= g[12] then
  g[15] = g[15] + 1
  g[16] = t
 end
end
F.pool_Pool_gateFor = function(op, who, who_o) -- internal/pool/pauses.go:245
 local g = S_gates[F.pool_Pool_pauseOf(op[20], who[who_o+3], who[who_o+5])] or ld(S_gates, F.pool_Pool_pauseOf(op[20], who[who_o+3], who[who_o+5]))
 if (g[1] == 0 and g[3] == 0 and g[2] == 0) then F.pool_Pool_followRamp(g, who, who_o) end
 F.pool_Pool_setCause(g, op, who[who_o+1])
 return g
end
F.pause_State_Throttled = function(g, t, granted, hint, b, b_o) -- internal/pause/pause.go:193
 F.pause_State_pass(g, t)
 if g[1] == 3 and granted > g[13] then F.pause_ramp_refuse(g, 10, g[13])
 else F.pause_ramp_refuse(g, 10, granted) end
 hint = ((hint > 2678400000000) and 0 or hint)
 if granted <= g[3] then
  if g[1] == 1 and hint > 0 then
   F.pause_State_prolong(g, t + (hint < 86400000000 and hint or 86400000000), b[b_o+3])
  end
  return false
 end
 g[4] = g[4] + 1
 local end_ = t + F.pause_pauseFor(hint, b, b_o, g[4])
 if hint == 0 then end_ = max(end_, ((g[1] == 1) and g[2] or t)) end
 F.pause_State_pause(g, t, end_, min(end_, t + b[b_o+3]))
 g[10] = b[b_o+3]
 return true
end
F.pause_State_Overloaded = function(g, t, granted, hint, b, b_o, every) -- internal/pause/pause.go:228
 F.pause_State_pass(g, t)
 if granted <= g[3] then return false end
 g[5] = g[5] + 1
 local end_ = max(t + F.pause_pauseFor(((hint > 2678400000000) and 0 or hint), b, b_o, g[5]), ((g[1] == 1) and g[2] or t))
 F.pause_State_pause(g, t, end_, min(end_, t + every))
 g[10] = every
 return true
end
F.pause_State_Exhausted = function(g, t, granted, wait) -- internal/pause/pause.go:258
 if ((wait > 2678400000000) and 0 or wait) <= 0 then return false end
 F.pause_State_pass(g, t)
 if granted > g[3] or g[1] == 1 then F.pause_State_hold(g, t, wait) end
 return true
end
F.pool_Pool_unfollow = function(in_) -- internal/pool/follow.go:181
 if in_[28] == 0 then return false end
 local m, window = S_models[in_[28]] or ld(S_models, in_[28]), (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1))[4]
 if m[19] == 0 and ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))[4] >= window then
  return false
 end
 m[19], m[14], m[18], m[15] = 0, 0, 0, 0
 m[20] = m[20] + 1
 F.pool_Pool_turn(in_, window, 0, in_[1])
 return true
end
F.pool_Pool_mayBeWindow = function(in_, used) -- internal/pool/model.go:286
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 if d[1] ~= 0 or r == nil or F.pool_ownBurst((S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))) or used > F.meter_Ring_Recent(r, d, once[1]) + in_[4] then
  return false
 end
 if in_[28] == 0 then return true end
 local m = S_models[in_[28]] or ld(S_models, in_[28])
 return m[25] == 0 and (m[29] == 0 or m[28] > 0)
end
F.meter_Ring_Unbrief = function(r, d) if r ~= nil and d[2] ~= 2 and r[4] == 0 then r[4] = d[6] end end -- internal/meter/ring.go:167
F.pool_Pool_turn = function(in_, window, seen, unseen) -- internal/pool/model.go:242
 local l = (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))
 local m, d = F.pool_Pool_modelOf(in_), copy_((S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)), 0, 9)
 d[1], d[4] = 1, window
 F.meter_Def_Reslice(d)
 if band(cfg[61], (1 * 2^(in_[11]))) ~= 0 and ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))[1] ~= 1 then
  in_[18] = slabNew(S_paces)
 end
 if l[4] > 0 and l[11] == 0 then in_[1] = in_[1] < l[4] and in_[1] or l[4] end
 F.meter_Meter_Turn(in_, ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), d, (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), once[1], seen < in_[1] and seen or in_[1], unseen < in_[1] and unseen or in_[1])
 move(m, 0, d, 0, 9)
 m[24] = 1
 m[28] = 0
end
F.meter_Ring_Odd = function(r, d, t) -- internal/meter/ring.go:153
 if r == nil or d[2] == 2 then return false end
 r[4] = min(2 * ((r == nil or r[4] == 0) and d[6] or r[4]), d[8])
 local again = r[7] ~= 0 and t - r[7] <= 3600000000
 r[7] = t
 if again then r[5], r[6] = min(r[5] + 50, 500), t end
 return again
end
F.pool_Pool_chargeUnstated = function(tk, used) -- internal/pool/lifecycle.go:248
 local stated = 0
 for k = 0, tk[25] - 1 do stated = bor(stated, (1 * 2^(tk[(k)*5+40]))) end
 for limit = 0, cfg[4] - 1 do
  repeat
   if band(stated, (1 * 2^(limit))) ~= 0 or (band(once[130], (1 * 2^(limit))) ~= 0) or (S_defs[limit+1] or ld(S_defs, limit+1))[1] == 3 then
    break
   end
   local n, known = F.pool_Pool_usedOf(used, limit)
   if not known or n == 0 then break end
   local c, c_o = tk, (tk[25])*5+35
   c[c_o+4], c[c_o+5] = F.pool_Pool_instOf(limit, tk, 9), limit % 256
   c[c_o+1], c[c_o+2], c[c_o+3] = 0, once[1], 1
   local in_ = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
   in_[17] = (floor(once[1] / 2^(20)) % 4294967296)
   if unscoped[limit][2] == nil then in_[16] = in_[16] + 1 end
   tk[25] = tk[25] + 1
  until true
 end
end
F.pool_Pool_usedOf = function(used, limit) -- internal/pool/lifecycle.go:207
 local n, ok = 0, false
 n, ok = F.store_AmountOf(used, (S_limits[limit+1] or ld(S_limits, limit+1)))
 return n, ok and n >= 0 and n <= 1099511627776
end
F.meter_Meter_Settle = function(m, d, r, t, c, c_o, actual) -- internal/meter/charge.go:228
 if d[1] == 3 then
 elseif actual < c[c_o+1] then
  F.meter_Meter_reduce(m, d, r, t, c, c_o, c[c_o+1] - actual)
  c[c_o+1] = actual
 elseif actual > c[c_o+1] then
  local more = {actual - c[c_o+1],0,0}
  if c[c_o+3] == 1 then F.meter_Meter_hold(m, d, more[1])
  elseif (c[c_o+3] == 2 and t < c[c_o+2]) then F.meter_Meter_chargeAt(m, d, r, more, 0, c[c_o+2])
  else
   F.meter_Meter_Bind(m, d, r, t, c, c_o)
   F.meter_Meter_add(m, d, r, t, more[1])
  end
  c[c_o+1] = actual
 end
end
F.pool_Pool_settled = function(tk, c, c_o, more) -- internal/pool/history.go:167
 local u = cfg[c[c_o+5]+33]
 if u >= 0 then
  local pd = F.pool_Pool_noted(tk)
  if pd ~= nil then pd[u+12] = max(pd[u+12] + more, 0) end
 end
end
F.order_Queue_Settled = function(at, was, is) -- internal/order/tags.go:41
 local lane = F.order_Queue_findLane(at)
 if lane == 0 then return end
 local i = F.order_Queue_findMember(lane, at[8], at[4])
 if i == 0 then return end
 local l, m = (S_qlanes[lane] or ld(S_qlanes, lane)), (S_qmembers[i] or ld(S_qmembers, i))
 local pt, pt_o = l, (at[8])*39+33
 for k = 0, l[20] - 1 do
  local tg, tg_o = pt, pt_o+(k)*2
  F.order_correct(tg, tg_o, tg, tg_o+1, F.order_Queue_partCost(l, at[8], k, is[k+17] - was[k+17]), pt[pt_o+36] > 0)
  local d = S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4])
  d[2] = d[2] > tg[tg_o+2] and d[2] or tg[tg_o+2]
  F.order_domain_level(d)
 end
 local before, _ = F.order_Costs_largest(was)
 local after, _ = F.order_Costs_largest(is)
 F.order_correct(m, 0, m, 1, after - before, m[6] > 0)
 pt[pt_o+34] = pt[pt_o+34] > m[2] and pt[pt_o+34] or m[2]
 F.order_part_level(pt, pt_o)
 if m[6] > 0 then F.order_Queue_rekey(i) end
end
F.meter_Meter_Spend = function(m, d, r, t, granted, c, c_o) -- internal/meter/charge.go:163
 if c[c_o+3] ~= 1 or d[1] == 3 or d[2] == 1 then return end
 local bound = min(granted + ((r == nil or r[4] == 0) and d[6] or r[4]), (t > granted and t or granted) + F.meter_Meter_Brief(m, d, r))
 if d[2] == 2 or t >= bound then
  F.meter_Meter_Bind(m, d, r, t > granted and t or granted, c, c_o)
  return 
 end
 F.meter_Meter_takeOut(m, d, r, c[c_o+1], c, c_o)
 F.meter_Meter_chargeAt(m, d, r, c, c_o, bound)
end
F.pool_Pool_splitLanes = function(scope) -- internal/pool/pauses.go:71
 if band(scope, bnot(once[6])) == 0 then return end
 once[6] = bor(once[6], scope)
 local waiting = {}
 do
  local i = 1
  while i < slabEnd(S_tickets) do
   if (S_tickets[i] or ld(S_tickets, i))[23] == 1 then
    local t1_ = waiting
    t1_[#t1_+1] = i
   end
   i = i + 1
  end
 end
 sortBy(waiting, function(a, b)
  return compare(F.order_Queue_Number((S_tickets[a] or ld(S_tickets, a))[17]), F.order_Queue_Number((S_tickets[b] or ld(S_tickets, b))[17]))
 end)
 local t3_ = waiting
 for t2_ = 0, #t3_ - 1 do
  local i = t3_[t2_+1]
  F.order_Queue_Remove((S_tickets[i] or ld(S_tickets, i))[17])
 end
 local t5_ = waiting
 for t4_ = 0, #t5_ - 1 do
  local i = t5_[t4_+1]
  local tk = S_tickets[i] or ld(S_tickets, i)
  local costs = F.pool_Pool_costs(tk)
  tk[17], tk[28] = F.order_Queue_Push((F.pool_Pool_position(tk)), i, costs, false), 0
 end
end
F.pause_State_hold = function(g, t, wait) -- internal/pause/pause.go:276
 local quiet = t + wait
 if g[1] == 1 then quiet = quiet > g[9] and quiet or g[9] end
 F.pause_State_pause(g, t, max(t + wait, ((g[1] == 1) and g[2] or t)), quiet)
end
F.meter_Meter_Lose = function(m, d, r, t, lost) -- internal/meter/withheld.go:44
 local mark, more = lost + d[8], m[1] - F.meter_Meter_Used(m, d, r)
 if m[1] == 0 or more <= 0 then return end
 if d[1] == 3 then
 elseif (d[1] == 2 and m[8] ~= 0) then
  if mark < m[10] then
   if mark < m[10] - d[4] or m[8] - d[4] <= t then return end
   m[7], m[8], m[10], m[6] = m[7] - d[4], m[8] - d[4], m[10] - d[4], m[5]
  end
  m[5] = m[5] + more
  if mark >= m[7] then m[6] = m[6] + more end
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then
  if F.meter_Ring_live(r, d, mark) then F.meter_Meter_add(m, d, r, mark, more) end
 elseif mark > t then
  local c = {more,0,0}
  F.meter_Meter_chargeAt(m, d, r, c, 0, mark)
 else
  local n, w = F.meter_Meter_rate(m, d)
  if n > 0 and t - mark > ((4503599627370496 - fmod(4503599627370496, n)) / n) then return end
  more = more - quo(mul(t - mark, n), w > 1 and w or 1)
  if more > 0 then F.meter_Meter_add(m, d, r, t, more) end
 end
end
F.order_Queue_leaveSpot = function(f) -- internal/order/park.go:78
 local fl = S_qflows[f] or ld(S_qflows, f)
 local s = S_qspots[fl[16]] or ld(S_qspots, fl[16])
 F.flat_Tree_Delete(s, 2, fl[17])
 if s[3] == 0 then
  indexRemove(X.spotIx, F.order_onHash(s[1]), fl[16])
  slabFree(S_qspots, fl[16])
 end
 fl[16], fl[17] = 0, 0
end
F.flat_Tree_Delete = function(root, root_o, i) -- internal/flat/tree.go:69
 local n = S_tnodes[i] or ld(S_tnodes, i)
 while n[4] ~= 0 and n[5] ~= 0 do
  if (S_tnodes[n[4]] or ld(S_tnodes, n[4]))[7] > (S_tnodes[n[5]] or ld(S_tnodes, n[5]))[7] then
   F.flat_Tree_rotateUp(root, root_o, n[4])
  else F.flat_Tree_rotateUp(root, root_o, n[5]) end
 end
 local child = n[4]
 if child == 0 then child = n[5] end
 if child ~= 0 then
  local t1_ = (S_tnodes[child] or ld(S_tnodes, child))
  t1_[6] = n[6]
 end
 F.flat_Tree_replace(root, root_o, n[6], i, child)
 slabRecycle(S_tnodes, i)
end
F.flat_Tree_Insert = function(root, root_o, key, value) -- internal/flat/tree.go:31
 local i = slabNew(S_tnodes)
 local n = S_tnodes[i] or ld(S_tnodes, i)
 n[1], n[2], n[3], n[4], n[5], n[6], n[7] = key[1], key[2], value, 0, 0, 0, F.flat_Tree_priority()
 if root[root_o+1] == 0 then
  root[root_o+1] = i
  return i
 end
 local at = root[root_o+1]
 while true do
  local a = S_tnodes[at] or ld(S_tnodes, at)
  local next_, next__o = a, 4
  if (key[1] < a[1] or (key[1] == a[1] and key[2] < a[2])) then next_, next__o = a, 3 end
  if next_[next__o+1] == 0 then
   next_[next__o+1] = i
   n[6] = at
   break
  end
  at = next_[next__o+1]
 end
 while n[6] ~= 0 and (S_tnodes[n[6]] or ld(S_tnodes, n[6]))[7] < n[7] do F.flat_Tree_rotateUp(root, root_o, i) end
 return i
end
F.order_Queue_findLeast = function() -- internal/order/heads.go:54
 if cfg[84] == 2 then return end
 do
  local i = counts[14]
  while i ~= 0 do
   local k, l = 0, (S_qlanes[i] or ld(S_qlanes, i))
   while k < l[20] do
    local t1_ = (S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4]))
    t1_[12] = 9.2233720368547758e+18
    k = k + 1
   end
   i = (S_qlanes[i] or ld(S_qlanes, i))[23]
  end
 end
 local i = counts[14]
 while i ~= 0 do
  local l = S_qlanes[i] or ld(S_qlanes, i)
  for c = 0, 9 - 1 do
   if l[c+25] ~= 0 then
    for k = 0, l[20] - 1 do
     local d = S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4])
     d[12] = min(d[12], l[(c)*39+(k)*2+34])
    end
   end
  end
  i = (S_qlanes[i] or ld(S_qlanes, i))[23]
 end
end
F.order_Queue_laneHeads = function(i, strict, each) -- internal/order/heads.go:78
 local l = S_qlanes[i] or ld(S_qlanes, i)
 local within, first = (strict[1] ~= 0 or ((strict[2] and true or false) and strict[2](l))), #T[3]
 for c = 0, 9 - 1 do
  if l[c+25] ~= 0 then
   local n = F.flat_Tree_Min(l[c+25])
   local t2_ = (F.order_Queue_rankOf(c, F.order_Queue_lead(l, c), (F.flat_Tree_KeyOf(n))[2], strict[1] ~= 0))
   local h = {(S_qflows[((S_tnodes[n] or ld(S_tnodes, n))[3])] or ld(S_qflows, ((S_tnodes[n] or ld(S_tnodes, n))[3])))[11],i,(c + 2147483648) % 4294967296 - 2147483648,t2_[1],t2_[2],t2_[3]}
   if #T[3] == first or (each and not within) then
    local t3_ = T[3]
    t3_[#t3_+1] = copy_(h, 0, 6)
   elseif each then
    local above = copy_(T[3][(#T[3] - 1)+1], 3, 3)
    if (firstOf(compare(h[3+1], above[0+1]), compare(h[3+2], above[0+2]), compare(h[3+3], above[0+3]))) <= 0 then
     move(h, 3, (F.order_rank_next(above, 0)), 0, 3)
    end
    local t4_ = T[3]
    t4_[#t4_+1] = copy_(h, 0, 6)
   elseif (not within and F.order_rank_compare(h, 3, T[3][first+1], 3) < 0) then move(T[3][first+1], 0, h, 0, 6) end
   if within and not each then break end
  end
 end
 return #T[3] > first
end
F.order_Queue_retire = function(i) -- internal/order/tags.go:107
 local l = S_qlanes[i] or ld(S_qlanes, i)
 if l[21] > 0 then return end
 for c = 0, 9 - 1 do
  local pt, pt_o = l, (c)*39+33
  for k = 0, l[20] - 1 do if pt[pt_o+(k)*2+2] > (S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4]))[1] then return end end
  F.order_Queue_forget(pt, pt_o)
  if pt[pt_o+38] ~= 0 then return end
 end
 F.order_Queue_dropLane(i)
end
F.order_rank_compare = function(a, a_o, b, b_o) -- internal/order/heads.go:23
 return firstOf(compare(a[a_o+1], b[b_o+1]), compare(a[a_o+2], b[b_o+2]), compare(a[a_o+3], b[b_o+3]))
end
F.pool_Pool_strictFrom = function(phase) -- internal/pool/pauses.go:178
 local s, i = {0,false}, once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  F.pause_State_Allow(g, once[1])
  if g[1] < phase or (g[1] == 0 or (g[1] == 3 and g[12] ~= 0 and once[1] - g[12] >= 10000000)) then
  elseif g[35] == 0 then s[1] = 1
  else
   s[2] = function(lane)
    return F.pool_Pool_strictLane(lane, phase)
   end
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
 return copy_(s, 0, 2)
end
F.order_Queue_ParkedBefore = function(w, on) -- internal/order/park.go:60
 local h, seq = F.order_onHash(on), (S_qwaiters[w] or ld(S_qwaiters, w))[5]
 local i, p = indexSeek(X.spotIx, h, 0)
 while i ~= 0 do
  local s = S_qspots[i] or ld(S_qspots, i)
  if s[1] == on and (F.flat_Tree_KeyOf(F.flat_Tree_Min(s[3])))[1] < seq then return true end
  i, p = indexSeek(X.spotIx, h, p)
 end
 return false
end
F.pool_inst_readyAt = function(in_, d, r, t, amount) -- internal/pool/insts.go:298
 local at = F.meter_Meter_ReadyAt(in_, d, r, t, amount)
 local most = (((r == nil or r[5] == 0) and in_[1] or F.meter_Meter_less(in_, r[5])) - ((d[9] == 0) and 0 or quo(mul(in_[1], d[9]), 4096)))
 if amount > most and amount <= in_[1] - ((d[9] == 0) and 0 or quo(mul(in_[1], d[9]), 4096)) then
  at = min(at, F.meter_Meter_ReadyAt(in_, d, r, t, most))
 end
 return at
end
F.order_Queue_spotOf = function(on, lane) -- internal/order/park.go:92
 local h = F.order_onHash(on)
 do
  local i, p = indexSeek(X.spotIx, h, 0)
  while i ~= 0 do
   local s = S_qspots[i] or ld(S_qspots, i)
   if s[1] == on and s[2] == lane then return i end
   i, p = indexSeek(X.spotIx, h, p)
  end
 end
 local i = slabNew(S_qspots)
 local s = S_qspots[i] or ld(S_qspots, i)
 s[1], s[2] = on, lane
 indexAdd(X.spotIx, h, i)
 return i
end
F.pool_inst_begin = function(in_, pass) if in_[20] ~= pass then in_[20], in_[21], in_[14] = pass, 0, 0 end end -- internal/pool/serve.go:235
F.meter_Meter_ReadyAt = function(m, d, r, t, need) -- internal/meter/ready.go:8
 if m[1] == 0 then return t end
 local at = F.meter_Meter_readyWithin(m, d, r, t, need, (((r == nil or r[5] == 0) and m[1] or F.meter_Meter_less(m, r[5])) - ((d[9] == 0) and 0 or quo(mul(m[1], d[9]), 4096))))
 if r == nil then return at end
 local cut, step_ = r[5] - 10, r[6] + 3600000000
 while cut > (-10) and step_ < at do
  at = min(at, max(step_, F.meter_Meter_readyWithin(m, d, r, t, need, F.meter_Meter_less(m, cut > 0 and cut or 0) - ((d[9] == 0) and 0 or quo(mul(m[1], d[9]), 4096)))))
  cut, step_ = cut - 10, step_ + 3600000000
 end
 return at
end
F.pause_State_LimitsBind = function(g) if g[1] == 3 and g[11] == 0 then g[1] = 0 end end -- internal/pause/pause.go:148
F.order_Queue_Granted = function(w, costs) -- internal/order/tags.go:5
 local wt = copy_((S_qwaiters[w] or ld(S_qwaiters, w)), 0, 7)
 local fl = S_qflows[wt[1]] or ld(S_qflows, wt[1])
 local member = fl[9]
 local l, m = (S_qlanes[fl[10]] or ld(S_qlanes, fl[10])), (S_qmembers[member] or ld(S_qmembers, member))
 local pt, pt_o = l, (m[10])*39+33
 for i = 0, l[20] - 1 do
  local d, tg, tg_o = (S_qdomains[l[i+4]] or ld(S_qdomains, l[i+4])), pt, pt_o+(i)*2
  d[1] = d[1] > tg[tg_o+1] and d[1] or tg[tg_o+1]
  tg[tg_o+2] = tg[tg_o+1] + F.order_Queue_partCost(l, m[10], i, costs[i+17])
  tg[tg_o+1] = tg[tg_o+2]
  d[2] = d[2] > tg[tg_o+2] and d[2] or tg[tg_o+2]
 end
 F.order_Queue_carry()
 pt[pt_o+33] = pt[pt_o+33] > m[1] and pt[pt_o+33] or m[1]
 m[2] = m[1] + wt[6]
 m[1] = m[2]
 pt[pt_o+34] = pt[pt_o+34] > m[2] and pt[pt_o+34] or m[2]
 F.order_Queue_Remove(w)
 if m[6] > 0 then F.order_Queue_rekey(member) end
 F.order_Queue_forget(pt, pt_o)
end
F.order_Queue_Ahead = function(w, above) -- internal/order/ahead.go:18
 local wt = S_qwaiters[w] or ld(S_qwaiters, w)
 local fl, others = S_qflows[wt[1]] or ld(S_qflows, wt[1]), counts[4] - wt[6]
 if others <= 0 then return 0 end
 if cfg[84] == 2 then
  if fl[11] == w and wt[3] ~= 0 then return 0 end
  return 1024
 end
 local class, l = fl[8], S_qlanes[fl[10]] or ld(S_qlanes, fl[10])
 local pt, pt_o, own = l, (class)*39+33, (S_qmembers[fl[9]] or ld(S_qmembers, fl[9]))[3] - wt[6]
 if fl[11] == w then own = 0 end
 local ahead = min(own + F.order_Queue_sooner(w, own), pt[pt_o+35] - wt[6])
 ahead = ahead + F.order_Queue_higher(l, class, wt[7], ahead, above)
 return quo((ahead < others and ahead or others) * 1024, others)
end
F.order_Share = function(amount, ahead) -- internal/order/ahead.go:84
 return mul((amount - fmod(amount, 1024)) / 1024, ahead) + quo(mul(fmod(amount, 1024), ahead), 1024)
end
F.pool_Pool_estimate = function(in_, d, r, before, need) -- internal/pool/serve.go:284
 local at = F.meter_Meter_Estimate(in_, d, r, once[1], before, need, F.pool_Pool_backWithin(in_, d))
 if d[9] ~= 0 then at = min(at, once[156] > once[1] and once[156] or once[1]) end
 return at
end
F.pool_depends = function(in_, d, r, now_, amount) -- internal/pool/serve.go:293
 return d[9] == 0 and F.pool_inst_room(in_, d, r, amount) < amount and F.pool_inst_readyAt(in_, d, r, now_, amount) >= 9007199254740992
end
F.pool_holdCode = function(ph) -- internal/pool/pauses.go:311
 local t1_ = ph
 if t1_ == 2 then return 4
 elseif t1_ == 3 then return 5
 else return 3 end
end
F.meter_Ring_arrive = function(r, t, amount) -- internal/meter/follow.go:23
 if r == nil or r[31] == 0 or amount <= 0 then return end
 if t > r[27] then
  if r[27] - r[(fmod(r[32], 24))*3+33] >= r[31] or t - r[27] >= r[31] then
   r[32] = r[32] + 1
   r[(fmod(r[32], 24))*3+33], r[(fmod(r[32], 24))*3+34], r[(fmod(r[32], 24))*3+35] = r[27], r[26], r[30]
  end
  r[27] = t
 end
 r[30] = r[28]
 r[26] = r[26] + amount
 if r[26] > 2251799813685248 then r[26], r[31], r[32] = 0, 0, 0 end
end
F.meter_Ring_sent = function(r, d, t, amount) -- internal/meter/ring.go:109
 if r == nil then return end
 local k = (t - fmod(t, d[4])) / d[4]
 if k > r[25] then
  local before = r[8]
  if k > r[25] + 1 then before = 0 end
  r[2], r[8], r[25] = before, 0, k
 end
 r[8] = min(r[8] + amount, 4503599627370496)
end
F.meter_Meter_fill = function(m, d, r, amount) -- internal/meter/meter.go:177
 F.meter_Ring_stood(r, m[7], ((m[6] > 0) and m[5] - 1 or m[5]))
 m[5] = m[5] + amount
 F.meter_Meter_clamp(m, d)
end
F.meter_Ring_at = function(r, slice) return r.slot, (slice % 512) end -- internal/meter/ring.go:139
F.meter_Meter_settlePending = function(m, d, r, t) -- internal/meter/meter.go:161
 while r[3] > 0 and mul(r[1] + 1, d[5]) <= t do
  local c, c_o = F.meter_Ring_at(r, r[1])
  if c[c_o+1] > 0 then
   F.meter_Meter_drain(m, d, mul(r[1] + 1, d[5]))
   F.meter_Ring_sent(r, d, mul(r[1] + 1, d[5]), c[c_o+1])
   F.meter_Ring_arrive(r, mul(r[1] + 1, d[5]), c[c_o+1])
   F.meter_Meter_fill(m, d, r, c[c_o+1])
   m[4] = m[4] - c[c_o+1]
   r[3] = r[3] - c[c_o+1]
   c[c_o+1] = 0
  end
  r[1] = r[1] + 1
 end
end
F.meter_Meter_drain = function(m, d, t) -- internal/meter/meter.go:132
 local dt = t - m[7]
 if dt <= 0 then return end
 m[7] = t
 if m[5] == 0 or m[2] == 0 then return end
 local n, w = m[2], m[3]
 if d[9] ~= 0 then
  n, w = F.meter_Meter_rate(m, d)
  if n == 0 then return end
 end
 local hi, lo = 0, (u64(dt) * u64(n))
 if hi ~= 0 or lo >= u64((mul(m[5], w) - m[6])) then
  m[5], m[6], m[9] = 0, 0, 0
  return 
 end
 local acc = m[6] + mul(dt, n)
 local drained = (acc - fmod(acc, w)) / w
 m[5] = m[5] - drained
 m[6] = acc - mul(drained, w)
 m[9] = m[9] < m[5] and m[9] or m[5]
end
F.meter_Meter_expire = function(m, d, r, t) -- internal/meter/meter.go:205
 if t < r[2] then return end
 local first = quo(t - d[4], d[5])
 while r[1] < first and m[5] > 0 do
  local c, c_o = F.meter_Ring_at(r, r[1])
  if c[c_o+1] ~= 0 then
   F.meter_Ring_came(r, d, mul(r[1] + 1, d[5]) + d[4], c[c_o+1])
   m[5] = m[5] - c[c_o+1]
   c[c_o+1] = 0
  end
  r[1] = r[1] + 1
 end
 r[1] = r[1] > first and r[1] or first
 m[9] = m[9] < m[5] and m[9] or m[5]
 if m[9] > 0 and (d[1] == 1 or (d[1] == 2 and m[8] == 0)) and t - m[10] > d[4] then m[9] = 0 end
 r[2] = mul(r[1] + 1, d[5]) + d[4]
end
F.meter_Ring_regain = function(r, t) -- internal/meter/ring.go:173
 while r[5] > 0 and t - r[6] >= 3600000000 do r[5], r[6] = max(r[5] - 10, 0), r[6] + 3600000000 end
end
F.meter_Meter_Used = function(m, d, r) -- internal/meter/meter.go:47
 if d[1] == 3 then return m[4]
 elseif (d[1] == 2 and m[8] ~= 0) then return m[5]
 else return m[5] + m[4] end
end
F.order_Queue_Waiting = function(c) return counts[c+5] end -- internal/order/queue.go:199
F.meter_Meter_less = function(m, cut) return m[1] - F.meter_ceilDiv(mul(m[1], cut), 1000) end -- internal/meter/meter.go:99
F.pool_sums_leaves = function(s, room) if s[5] ~= 0 then s[2] = room end end -- internal/pool/fast.go:289
F.pool_Pool_settleFast = function(in_, s, c, c_o, actual, answered) -- internal/pool/fast.go:320
 F.pool_Pool_enterSums(s)
 local d, r = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)
 if in_[1] > 0 then actual = min(actual, 8 * in_[1]) end
 local more = actual - c[c_o+1]
 if answered and s[7] == 0 then F.meter_Meter_Bind(in_, d, r, once[1], c, c_o) end
 F.meter_Meter_Settle(in_, d, r, once[1], c, c_o, actual)
 F.meter_Meter_Bind(in_, d, r, once[1], c, c_o)
 F.pool_sums_leaves(s, F.meter_Meter_Room(in_, d, r))
 return more
end
F.pool_Pool_usedLessBefore = function(l, t, unit, less) -- internal/pool/tallies.go:144
 if t[5] ~= 0 then F.pool_Pool_enterTally(t) end
 local i = F.pool_Pool_periodIn((S_crecs[t[1]] or ld(S_crecs, t[1])), l[23], l[19])
 if i ~= 0 then
  local pd = S_hperiods[i] or ld(S_hperiods, i)
  pd[unit+12] = max(pd[unit+12] - less, 0)
 end
end
F.order_Queue_count = function(l, m, n, cost) -- internal/order/queue.go:327
 local pt, pt_o = l, (m[10])*39+33
 m[6] = m[6] + n
 m[3] = m[3] + cost
 pt[pt_o+36] = pt[pt_o+36] + n
 pt[pt_o+35] = pt[pt_o+35] + cost
 l[21] = l[21] + n
 local t1_ = m[10]
 counts[t1_+5] = counts[t1_+5] + n
 counts[3] = counts[3] + n
 counts[4] = counts[4] + cost
end
F.order_Queue_dropFlow = function(i) -- internal/order/index.go:40
 local fl = S_qflows[i] or ld(S_qflows, i)
 if fl[14] ~= 0 then
  local t1_ = (S_qflows[fl[14]] or ld(S_qflows, fl[14]))
  t1_[15] = fl[15]
 else
  local t2_ = (S_qmembers[fl[9]] or ld(S_qmembers, fl[9]))
  t2_[7] = fl[15]
 end
 if fl[15] ~= 0 then
  local t3_ = (S_qflows[fl[15]] or ld(S_qflows, fl[15]))
  t3_[14] = fl[14]
 end
 indexRemove(X.flowIx, F.order_Position_hash(fl), i)
 slabFree(S_qflows, i)
end
F.order_Queue_activate = function(l, class, n) -- internal/order/queue.go:262
 local t1_ = (class)*39
 l[t1_+70] = l[t1_+70] + n
 for i = 0, l[20] - 1 do
  local d = S_qdomains[l[i+4]] or ld(S_qdomains, l[i+4])
  d[class+3] = d[class+3] + n
  F.order_domain_level(d)
 end
end
F.order_Queue_enterIdle = function(i) -- internal/order/tags.go:145
 local m = S_qmembers[i] or ld(S_qmembers, i)
 local pt, pt_o = F.order_Queue_partOf(m)
 m[8], m[9] = pt[pt_o+39], 0
 if pt[pt_o+39] ~= 0 then
  local t1_ = (S_qmembers[pt[pt_o+39]] or ld(S_qmembers, pt[pt_o+39]))
  t1_[9] = i
 else pt[pt_o+38] = i end
 pt[pt_o+39] = i
end
F.order_Queue_forget = function(pt, pt_o) -- internal/order/tags.go:128
 for t1_ = 0, 4 - 1 do
  local i = pt[pt_o+38]
  if i == 0 then return end
  if (S_qmembers[i] or ld(S_qmembers, i))[2] > pt[pt_o+33] then
   F.order_Queue_leaveIdle(i)
   F.order_Queue_enterIdle(i)
  else F.order_Queue_dropMember(i) end
 end
end
F.order_part_level = function(pt, pt_o) -- internal/order/queue.go:279
 if pt[pt_o+36] == 0 then pt[pt_o+33] = pt[pt_o+33] > pt[pt_o+34] and pt[pt_o+33] or pt[pt_o+34] end
end
F.order_Queue_rest = function() -- internal/order/tags.go:94
 local i = counts[14]
 while i ~= 0 do
  local l = S_qlanes[i] or ld(S_qlanes, i)
  local next_ = l[23]
  for c = 0, 9 - 1 do F.order_Queue_forget(l, (c)*39+33) end
  F.order_Queue_retire(i)
  i = next_
 end
end
F.meter_Meter_reduce = function(m, d, r, t, c, c_o, amount) -- internal/meter/charge.go:251
 if d[1] == 3 and c[c_o+3] == 0 then return end
 if d[1] == 0 and c[c_o+3] ~= 1 and not (d[1] == 0 and c[c_o+3] == 2 and F.meter_Ring_live(r, d, c[c_o+2])) then
  F.meter_Meter_undrain(m, r, t, c[c_o+2], amount)
  return 
 end
 F.meter_Meter_takeOut(m, d, r, amount, c, c_o)
end
F.policy_Pace_Refund = function(p, t, amount, size, window) F.policy_Pace_Take(p, t, -amount, size, window) end -- internal/policy/pace.go:52
F.pool_caller_uncount = function(c, waited, retry) -- internal/pool/callers.go:72
 if c[10] == 0 then return end
 c[10] = c[10] - 1
 c[11] = max(c[11] - waited, 0)
 if retry and c[6] > 0 then c[6] = c[6] - 1 end
end
F.meter_Ring_live = function(r, d, bound) return ((bound - fmod(bound, d[5])) / d[5]) >= r[1] end -- internal/meter/ring.go:142
F.pool_Pool_mostMeters = function(limit) -- internal/pool/crowd.go:31
 local most = cfg[90]
 if most == 0 then most = 10000 end
 if band((S_limits[limit+1] or ld(S_limits, limit+1))[7], bnot(20)) == 0 then
  most = max((most - fmod(most, 10)) / 10, 1)
 end
 return (most + 2147483648) % 4294967296 - 2147483648
end
F.meter_Meter_clamp = function(m, d) -- internal/meter/meter.go:185
 if m[5] <= 2 * m[1] then return end
 local _, w = F.meter_Meter_rate(m, d)
 local most = max(quo(4503599627370496, w > 1 and w or 1), 2 * m[1])
 if m[5] > most then m[5], m[10] = most, m[7] + 1 end
end
F.pause_ramp_begin = function(r, r_o, t, probe) -- internal/pause/ramp.go:214
 if probe ~= 0 then F.pause_ramp_learn(r, r_o, probe)
 else F.pause_ramp_learn(r, r_o, t) end
 r[r_o+2], r[r_o+3], r[r_o+4], r[r_o+5], r[r_o+7], r[r_o+8], r[r_o+13], r[r_o+21], r[r_o+16], r[r_o+6] = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
 for i = 0, 4 - 1 do r[r_o+i+9] = 0 end
 if r[r_o+17] == 0 then r[r_o+24] = 1 end
 while r[r_o+18] > 511 * r[r_o+24] do F.pause_ramp_thin(r, r_o, r[r_o+17]) end
 if probe ~= 0 then
  F.pause_ramp_mark(r, r_o, probe)
  r[r_o+2], r[r_o+5], r[r_o+7] = t, 1, 1
  if r[r_o+1] ~= 0 then r[r_o+2], r[r_o+3] = probe, probe end
 end
end
F.pause_gap = function(n) -- internal/pause/ramp.go:56
 if n < 1 then return 400000
 elseif n < 8 then return (400000 - fmod(400000, n)) / n
 elseif n < 100 then return 50000 end
 return (5000000 - fmod(5000000, n)) / n
end
F.pause_ramp_nth = function(r, r_o, n) -- internal/pause/ramp.go:127
 local i = quo(n + r[r_o+24] - 1, r[r_o+24])
 if mul(i, r[r_o+24]) >= (r[r_o+17] + r[r_o+4] - r[r_o+16]) then return r[r_o+3] end
 return r.marks[fmod(i, 512)+1]
end
F.store_AmountOf = function(amounts, l) -- store/store.go:459
 local n, stated, i = 0, false, #amounts - 1
 while i >= 0 do
  local a = amounts[i+1]
  if F.store_Amount_concerns(a, l) then return a[3], true end
  i = i - 1
 end
 return 0, false
end
F.pool_Pool_crowded = function(limit) -- internal/pool/crowd.go:43
 if once[limit+65] >= F.pool_Pool_mostMeters(limit) then return true end
 local i = once[limit+81]
 return i ~= 0 and ((S_insts[i] or ld(S_insts, i))[16] > 0 or not F.pool_Pool_uncharged(i))
end
F.pool_Pool_crowdScope = function(per) -- internal/pool/crowd.go:52
 local who = {once[113],once[113],once[113],once[113],once[113]}
 return F.pool_scoped(who, 0, per)
end
F.pool_Pool_newInst = function(limit, scope, scope_o) -- internal/pool/insts.go:94
 local l, i = (S_limits[limit+1] or ld(S_limits, limit+1)), slabNew(S_insts)
 local in_ = S_insts[i] or ld(S_insts, i)
 in_[11], in_[12] = limit % 256, 1
 in_[23], in_[24], in_[25], in_[26], in_[27] = scope[scope_o+1] ~= 0 and F.flat_Names_Keep(scope[scope_o+1]) or 0, scope[scope_o+2] ~= 0 and F.flat_Names_Keep(scope[scope_o+2]) or 0, scope[scope_o+3] ~= 0 and F.flat_Names_Keep(scope[scope_o+3]) or 0, scope[scope_o+4] ~= 0 and F.flat_Names_Keep(scope[scope_o+4]) or 0, scope[scope_o+5] ~= 0 and F.flat_Names_Keep(scope[scope_o+5]) or 0
 if F.meter_Def_NeedsRing((S_defs[limit+1] or ld(S_defs, limit+1))) then in_[15] = slabNew(S_rings) end
 if band(cfg[61], (1 * 2^(limit))) ~= 0 then
  local t1_ = (S_defs[limit+1] or ld(S_defs, limit+1))[1]
  if t1_ == 2 then in_[18] = slabNew(S_stocks)
  elseif t1_ == 1 then in_[18] = slabNew(S_paces) end
 end
 local err = F.meter_Meter_Start(in_, (S_defs[limit+1] or ld(S_defs, limit+1)), (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), once[1], l[4], l[5], F.pool_Pool_resetOf(limit, scope, scope_o))
 if err and true or false then return 0, err end
 F.pool_Pool_enroll(limit, scope, scope_o, i)
 if F.pool_Pool_ramps(limit) and in_[1] == 0 and once[limit+81] ~= i and not F.pool_Pool_anyKnown() then
  F.pool_Pool_startRamp(l[7], scope[scope_o+3], scope[scope_o+5])
 end
 local name = F.pool_names_sole(scope, scope_o, l[7])
 if name ~= 0 then
  local t2_, t2_o = F.flat_Names_Tags(name)
  local first, first_o = t2_, t2_o+1
  in_[19], first[first_o+1] = first[first_o+1], i
 elseif l[7] ~= 0 then indexAdd(X.instIx, F.pool_scopeHash(limit, scope, scope_o), i) end
 F.pool_Pool_lose(i)
 return i, nil
end
F.pool_Pool_keptOfStock = function(tk, c, c_o, in_, d, r) -- internal/pool/stock.go:202
 local code, at = 0, 0
 local room, size = F.meter_Meter_Room(in_, d, r), (((r == nil or r[5] == 0) and in_[1] or F.meter_Meter_less(in_, r[5])) - ((d[9] == 0) and 0 or quo(mul(in_[1], d[9]), 4096)))
 local left, st = room - c[c_o+1], F.pool_Pool_stockOf(in_)
 if size - left <= F.policy_Part(size, F.pool_Pool_safeOf(in_, tk[24])) and (st[9+1] == 0 and st[9+9] == 0) then
  return 0, 0
 end
 local highest = 0
 local keep = function(why, line, over)
  local floor_ = min(F.policy_Floor_At(line, once[1]), size - c[c_o+1])
  if floor_ <= 0 or left >= floor_ then return end
  at = max(at, min(F.policy_Floor_When(line, once[1], left > 0 and left or 0), over))
  if floor_ > highest then code, highest = why, floor_ end
 end
 local sinking = {0,d[4],in_[8]}
 local light = copy_(sinking, 0, 3)
 if (cfg[29] > 0 and (cfg[32] ~= 0 or d[4] >= quo(600000000000, 1000))) then
  light[1] = F.policy_Part(size, ((tk[24] == 0) and cfg[30] or cfg[29]))
  if cfg[31] ~= 0 then light[2] = 0 end
  keep(10, light, in_[8])
 end
 if cfg[91] > 0 then
  sinking[1] = F.policy_Part(size, cfg[91])
  keep(12, sinking, in_[8])
 end
 if cfg[92] ~= 0 and (tk[24] > 0 or not F.pool_Pool_amber(in_, d, room, size)) then
  local s = {max(size - in_[9], 0),cfg[93],cfg[94],cfg[95],cfg[96],cfg[97],cfg[98],cfg[99],cfg[100],st[2],st[3],st[4],st[5],st[6],st[7],st[8],st[9],bor(F.pool_Pool_living(), (1 * 2^(tk[24])))}
  sinking[1] = F.policy_Shares_Floor(s, tk[24], light[1])
  keep(11, sinking, min(in_[8], F.pool_Pool_nextDeath(tk[24])))
 end
 if (tk[24] > 0 and cfg[28] ~= 0 and (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))[13] ~= 0) then
  if F.pool_Pool_hasPerson(tk, in_) then
   sinking[1] = (mul((size - fmod(size, 1000)) / 1000, 800) + quo(mul(fmod(size, 1000), 800), 1000))
   keep(13, sinking, in_[8])
  end
  local opened, eased = in_[8] - d[4], F.policy_Ease(d[4])
  if once[1] < opened + eased then keep(13, (F.policy_EaseFloor(size, opened, eased)), opened + eased) end
 end
 if tk[24] > 0 and cfg[88] > 0 then
  local b, b_o = F.pool_Pool_judgeStock(st, in_, room)
  if b[b_o+1] ~= 0 and cfg[89] == 0 then
   keep(14, ({b[b_o+3],max(b[b_o+4] - b[b_o+2], 1),b[b_o+4]}), in_[8])
   if code == 14 then F.policy_Breaker_Press(b, b_o, at) end
  end
  local ok, until_ = F.policy_Breaker_Allow(b, b_o, once[1])
  if not ok then
   F.pool_Pool_wakeAt(until_)
   code, at = 14, max(at, until_ < in_[8] and until_ or in_[8])
  end
 end
 return code, at
end
F.pool_Pool_rivalWants = function(inst) -- internal/pool/stock.go:169
 if once[10] == 0 then return false end
 local tk = S_tickets[once[10]] or ld(S_tickets, once[10])
 for k = 0, tk[25] - 1 do if tk[(k)*5+39] == inst then return true end end
 return false
end
F.policy_Pace_Allow = function(p, t, amount, size, window) -- internal/policy/pace.go:25
 local burst = max((size - fmod(size, 20)) / 20, 1)
 return max(p[1] - F.policy_Gap(max(burst - amount, 0), size, window), t)
end
F.pool_Pool_deathOf = function(class) -- internal/pool/leases.go:65
 local t = once[class+11]
 if t > once[1] and F.order_Queue_Waiting(class + 1) == 0 and (class > 0 or (counts[0+5]) == 0) then return t end
 return 9007199254740992
end
F.pool_Pool_keptOfFlow = function(tk, c, c_o, in_, d, r) -- internal/pool/stock.go:183
 local size = (((r == nil or r[5] == 0) and in_[1] or F.meter_Meter_less(in_, r[5])) - ((d[9] == 0) and 0 or quo(mul(in_[1], d[9]), 4096)))
 local floor_ = min(F.policy_Part(size, ((tk[24] == 0) and cfg[30] or cfg[29])), size - c[c_o+1])
 if floor_ <= 0 or F.meter_Meter_Room(in_, d, r) - c[c_o+1] >= floor_ then return 0, 0 end
 return 10, F.meter_Meter_ReadyAt(in_, d, r, once[1], c[c_o+1] + floor_)
end
F.pause_State_Sent = function(g, t, ticket) -- internal/pause/pause.go:136
 local t1_ = g[1]
 if t1_ == 1 then g[6], g[8], g[9] = ticket, t, t + (g[10] > 1000000 and g[10] or 1000000)
 elseif t1_ == 2 then g[6], g[8] = ticket, t
 elseif t1_ == 3 then F.pause_ramp_grant(g, 10, t) end
end
F.order_Queue_flowOf = function(at, costs) -- internal/order/index.go:20
 local h = F.order_Position_hash(at)
 do
  local i, p = indexSeek(X.flowIx, h, 0)
  while i ~= 0 do
   if same((S_qflows[i] or ld(S_qflows, i)), 0, at, 0, 8) then return i end
   i, p = indexSeek(X.flowIx, h, p)
  end
 end
 local i = slabNew(S_qflows)
 local fl = S_qflows[i] or ld(S_qflows, i)
 move(fl, 0, at, 0, 8)
 fl[10] = F.order_Queue_laneOf(at, costs)
 fl[9] = F.order_Queue_memberOf(fl[10], at[8], at[4])
 local m = S_qmembers[fl[9]] or ld(S_qmembers, fl[9])
 fl[15] = m[7]
 if fl[15] ~= 0 then
  local t1_ = (S_qflows[fl[15]] or ld(S_qflows, fl[15]))
  t1_[14] = i
 end
 m[7] = i
 indexAdd(X.flowIx, h, i)
 return i
end
F.order_Costs_largest = function(c) -- internal/order/queue.go:166
 local cost, lead = 0, 0
 cost = 1
 for i = 0, c[33] - 1 do if c[i+17] > cost then cost, lead = c[i+17], i % 256 end end
 return cost, lead
end
F.order_Queue_number = function(front) -- internal/order/queue.go:252
 if front then
  counts[2] = counts[2] - 1
  return counts[2]
 end
 counts[1] = counts[1] + 1
 return counts[1]
end
F.order_Queue_leaveIdle = function(i) -- internal/order/tags.go:157
 local m = S_qmembers[i] or ld(S_qmembers, i)
 local pt, pt_o = F.order_Queue_partOf(m)
 if m[8] ~= 0 then
  local t1_ = (S_qmembers[m[8]] or ld(S_qmembers, m[8]))
  t1_[9] = m[9]
 else pt[pt_o+38] = m[9] end
 if m[9] ~= 0 then
  local t2_ = (S_qmembers[m[9]] or ld(S_qmembers, m[9]))
  t2_[8] = m[8]
 else pt[pt_o+39] = m[8] end
 m[8], m[9] = 0, 0
end
F.pool_Pool_laneName = function(t, per, name) -- internal/pool/ticket.go:212
 local told = false
 for k = 0, t[25] - 1 do
  local c, c_o = t, (k)*5+35
  if not (band(cfg[61], (1 * 2^(c[c_o+5]))) == 0 or band((S_limits[c[c_o+5]+1] or ld(S_limits, c[c_o+5]+1))[7], per) == 0) then
   if c[c_o+4] ~= once[c[c_o+5]+81] then return name end
   told = true
  end
 end
 if told or (name ~= 0 and (slabLen(S_qlanes)) >= 1024) then return once[113] end
 return name
end
F.pool_Pool_endFailures = function() -- internal/pool/trouble.go:36
 if once[140] == 0 then return end
 if once[143] ~= 0 then F.flat_Names_Drop(once[143]) end
 if once[144] ~= 0 then F.flat_Names_Drop(once[144]) end
 once[144] = 0
 once[140], once[141], once[142], once[143], once[145], once[146] = 0, 0, 0, 0, 0, 0
end
F.meter_Meter_Resize = function(m, d, size, burst) -- internal/meter/def.go:150
 if size < 0 or size > 1099511627776 or burst < 0 or burst > 1099511627776 then return "error" end
 if d[1] ~= 0 or size == 0 then
  m[1] = size
  return nil
 end
 if burst == 0 then burst = size end
 local n, w, err = F.meter_Rate(size, d[4], burst)
 if err and true or false then return err end
 if m[3] == 0 then m[5] = m[5] < burst and m[5] or burst end
 if m[3] ~= w or (d[9] ~= 0 and (m[2] ~= n or m[1] ~= burst)) then m[6] = 0 end
 if m[2] ~= n or m[3] ~= w then m[10] = m[7] end
 m[1], m[2], m[3] = burst, n, w
 F.meter_Meter_clamp(m, d)
 return nil
end
F.pool_Pool_limitKnown = function(in_) -- internal/pool/ramps.go:66
 local l = (S_limits[in_[11]+1] or ld(S_limits, in_[11]+1))
 if l[12] ~= 0 or (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1))[4] > 3600000000 then return end
 local scope, model, key = F.pool_gateScope(l[7], in_[25], in_[27])
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if g[35] == scope and g[36] == model and g[37] == key then F.pause_State_LimitsKnown(g) end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
end
F.pool_Pool_state = function(o, l, in_, made, own) -- internal/pool/model.go:66
 local s = {o[2],o[2] - o[3],0,0,quo(o[4], 1000),once[1] - made,0}
 if o[6] > 0 then s[1] = o[6] end
 if o[4] <= 0 or o[2] <= 0 or o[2] > 1099511627776 or o[3] < 0 or o[3] >= o[2] or s[1] < o[2] or s[1] > 1099511627776 or in_[1] ~= o[2] then
  return copy_(s, 0, 7), false
 end
 if (l[4] > 0 and l[11] == 0 and l[5] ~= l[4]) then return copy_(s, 0, 7), false end
 s[7] = (F.pool_fine(o)) and 1 or 0
 s[3], s[4] = max(s[2] - 1, own < s[2] and own or s[2]), s[2]
 if l[12] ~= 0 and s[1] >= 10000 then s[3], s[4] = max(s[2] - 1000, 0), min(s[2] + 1000, s[1]) end
 return copy_(s, 0, 7), true
end
F.pool_Pool_modelOf = function(in_) -- internal/pool/model.go:221
 if in_[28] == 0 then
  in_[28] = slabNew(S_models)
  local t1_ = (S_models[in_[28]] or ld(S_models, in_[28]))
  move(t1_, 0, (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)), 0, 9)
 end
 return S_models[in_[28]] or ld(S_models, in_[28])
end
F.pool_model_tell = function(m, s, now_) -- internal/pool/follow.go:48
 local off = 2 * max(((s[7] ~= 0) and 50000 or 2200000), m[12]) + (s[6] > m[11] and s[6] or m[11])
 m[13] = m[13] > s[5] and m[13] or s[5]
 if m[29] ~= 0 then
  local apart, moved = s[5] - m[10], now_ + s[5] - m[29]
  if (apart > -apart and apart or -apart) > off and (moved > -moved and moved or -moved) > off and (moved > -moved and moved or -moved) < m[13] - off then
   m[14] = 1
  end
 end
 m[10], m[11], m[12] = s[5], s[6], ((s[7] ~= 0) and 50000 or 2200000)
end
F.pool_Pool_shorten = function(in_, m, s) -- internal/pool/follow.go:90
 local d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
 local window = max(2 * (s[5] + ((s[7] ~= 0) and 50000 or 2200000)), 250000)
 if window > ((d[4] - fmod(d[4], 2)) / 2) or m[20] > 0 or m[26] ~= 0 or F.pool_headerTime_slowerThan(once, 29, d, (not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil)) then
  m[15] = 0
  return 
 end
 if m[15] == 0 then m[17], m[16] = 0, once[1] end
 m[17] = m[17] > window and m[17] or window
 if m[15] < 100 then m[15] = m[15] + 1 end
 if m[15] >= 3 and once[1] - m[16] >= 2 * m[17] then
  m[15] = 0
  F.pool_Pool_turn(in_, m[17], in_[5], 0)
 end
end
F.pool_statement_within = function(s, window, off) -- internal/pool/model.go:122
 local from, to, ok = F.pool_statement_span(s, window, off)
 return ok and s[5] >= from and s[5] <= to
end
F.pool_Pool_prove = function(m, d, s) -- internal/pool/model.go:210
 if m[29] == 0 or s[5] >= d[4] - 4400000 then return end
 local apart = fmod(max(once[1] + s[5] - m[29], m[29] - once[1] - s[5]), d[4])
 if min(apart, d[4] - apart) > 4400000 + s[6] then m[25] = 1 end
end
F.pool_Pool_quicken = function(in_, m, s) -- internal/pool/follow.go:62
 local d = ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_))
 if m[14] == 0 or m[20] > 0 or s[3] <= 0 or s[1] > quo(4503599627370496, s[5] + ((s[7] ~= 0) and 50000 or 2200000)) then
  m[15] = 0
  return false
 end
 local window = max(quo(mul(s[5] + ((s[7] ~= 0) and 50000 or 2200000), s[1]), s[3]) + 1, 250000)
 if window >= d[4] - ((d[4] - fmod(d[4], 50)) / 50) then
  m[15] = 0
  return false
 end
 if m[15] == 0 then m[17] = 0 end
 m[17] = m[17] > window and m[17] or window
 m[15] = m[15] + 1
 if m[15] >= 3 then
  m[15] = 0
  F.pool_Pool_stretch(in_, m[17])
 end
 return true
end
F.pool_Pool_stretch = function(in_, window) -- internal/pool/model.go:230
 local m, d = F.pool_Pool_modelOf(in_), copy_((S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)), 0, 9)
 d[4] = window
 if not F.meter_Meter_Resize(in_, d, in_[1], in_[1]) then
  F.meter_Ring_Rescale((not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), ((in_[28] == 0) and (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1)) or F.pool_Pool_defOf(in_)), d, once[1])
  move(m, 0, d, 0, 9)
  m[24] = (window ~= (S_defs[in_[11]+1] or ld(S_defs, in_[11]+1))[4]) and 1 or 0
  m[28] = 0
  m[25] = 0
 end
end
F.pool_statement_longer = function(s, than) -- internal/pool/model.go:129
 local off = ((s[7] ~= 0) and 50000 or 2200000)
 if s[5] < 8 * off or s[4] > s[3] + ((s[3] - fmod(s[3], 4)) / 4) then return 0 end
 local window = 60000000
 while window <= than or not F.pool_statement_within(s, window, off) do
  local t1_ = window
  if t1_ == 60000000 then window = 3600000000
  elseif t1_ == 3600000000 then window = 86400000000
  else return 0 end
 end
 return window
end
F.pool_statement_span = function(s, window, off) -- internal/pool/model.go:96
 local from, to, ok = 0, 0, false
 from, ok = F.meter_DrainTime(s[1], window, s[3])
 if not ok then return 0, 0, false end
 to, ok = F.meter_DrainTime(s[1], window, s[4])
 return from - off - s[6], to + off, ok
end
F.pool_model_doubt = function(m) -- internal/pool/model.go:203
 m[28] = m[28] + 1
 return m[28] >= 2
end
F.meter_Meter_MostUsed = function(m, d, r, t, made) -- internal/meter/observe.go:98
 local used, known = 0, false
 if (d[1] == 2 and m[8] ~= 0) then return m[5], true
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then
  local gone, ok = F.meter_Ring_goneSince(r, d, made)
  return m[5] + m[4] + gone, ok
 elseif (d[1] == 0 and m[2] > 0 and t - made < ((4503599627370496 - fmod(4503599627370496, m[2])) / m[2])) then
  local out, ok = F.meter_Ring_recalled(r, made)
  return m[5] + m[4] + out + F.meter_ceilDiv(mul(t - made, m[2]), m[3]), ok
 else return 0, false end
 return used, known
end
F.meter_Ring_Recent = function(r, d, t) -- internal/meter/ring.go:124
 local t1_ = ((t - fmod(t, d[4])) / d[4]) - r[25]
 if t1_ == 0 then return r[8] + r[2]
 elseif t1_ == 1 then return r[8] end
 return 0
end
F.pool_Pool_unseen = function(in_, made, own) -- internal/pool/follow.go:163
 local n, known = F.meter_Ring_Unseen((not (in_[15] == 0) and (S_rings[in_[15]] or ld(S_rings, in_[15])) or nil), made)
 if not known then return -1 end
 return max(n - own, 0)
end
F.pool_ticket_arrived = function(tk, limit, l) -- internal/pool/follow.go:172
 if l[10] ~= 0 then return 0 end
 return F.pool_ticket_cost(tk, limit)
end
F.pool_fine = function(o) -- internal/pool/model.go:87
 if o[5] > 0 then return quo(o[5], 1000) <= 50000 end
 return fmod(quo(o[4], 1000), 1000000) ~= 0
end
F.meter_Meter_Forget = function(m, d, r, t, gone, own, unseen) -- internal/meter/turn.go:39
 local back, now_ = quo(gone - d[4], d[5]), (t - fmod(t, d[5])) / d[5]
 if not (d[1] == 1 or (d[1] == 2 and m[8] == 0)) or gone < t or back < r[1] or back >= now_ then return false end
 local moved, t1_, t1_o = min(own, far(1, F.meter_Ring_at(r, now_))), F.meter_Ring_at(r, now_)
 t1_[t1_o+1] = t1_[t1_o+1] - moved
 local k = r[1] + 512 - 1
 while k > back and unseen >= 0 do
  local c, c_o = F.meter_Ring_at(r, k)
  local part = c[c_o+1] - (unseen < c[c_o+1] and unseen or c[c_o+1])
  unseen = unseen - (c[c_o+1] - part)
  if k <= now_ then
   c[c_o+1] = c[c_o+1] - part
   moved = moved + part
  end
  k = k - 1
 end
 local t2_, t2_o = F.meter_Ring_at(r, back)
 t2_[t2_o+1] = t2_[t2_o+1] + moved
 if moved > 0 then r[105] = t end
 return moved > 0
end
F.meter_Def_phased = function(d, width) return 2 * (width > d[6] and width or d[6]) <= d[4] end -- internal/meter/def.go:136
F.meter_floorDiv = function(a, b) -- internal/meter/meter.go:230
 if a < 0 then return -F.meter_ceilDiv(-a, b) end
 return (a - fmod(a, b)) / b
end
F.meter_Meter_openFixed = function(m, d, r, lo, hi) -- internal/meter/observe.go:46
 local later = 0
 do
  local k = max(r[1], (lo - fmod(lo, d[5])) / d[5])
  while k < r[1] + 512 do
   later = later + far(1, F.meter_Ring_at(r, k))
   k = k + 1
  end
 end
 local tail = r[1]
 local k = tail
 while k < tail + 512 do
  local t1_, t1_o = F.meter_Ring_at(r, k)
  t1_[t1_o+1] = 0
  k = k + 1
 end
 m[5] = m[5] + m[4]
 m[6] = later
 m[10] = mul(tail, d[5])
 m[7], m[8] = lo, hi
end
F.meter_Meter_moveReset = function(m, d, r, t, lo, hi) -- internal/meter/observe.go:37
 if lo < m[7] and lo <= t + ((r == nil or r[4] == 0) and d[6] or r[4]) then m[6] = max(m[6], m[5] - m[4]) end
 m[7], m[8] = lo, hi
end
F.policy_Breaker_Sample = function(b, b_o, r, t, left, underway) -- internal/policy/breaker.go:59
 if r[2] <= 0 then return end
 left = left > 0 and left or 0
 if b[b_o+12] > 0 then
  local last = F.policy_Breaker_at(b, b_o, b[b_o+12] - 1)
  if t < last[1] then return end
  if left > last[2] + (underway > 0 and underway or 0) then
   b[b_o+12] = 0
   F.policy_Breaker_close(b, b_o, t)
  end
 end
 F.policy_Breaker_keep(b, b_o, (r[2] < 64 and r[2] or 64) - 1)
 b.ring[(fmod(b[b_o+11] + b[b_o+12], 64))*2+1], b.ring[(fmod(b[b_o+11] + b[b_o+12], 64))*2+2] = t, left
 b[b_o+12] = b[b_o+12] + 1
 b[b_o+10] = 1
end
F.pool_Pool_rule = function() -- internal/pool/stock.go:65
 local b, b_o = cfg, 86
 return {quo(b[b_o+1], 1000),b[b_o+2],((b[b_o+3] ~= 0) and 1 or 0)}
end
F.pool_Pool_judgeStock = function(st, in_, room) -- internal/pool/stock.go:278
 local b, b_o = st, 9
 F.policy_Breaker_Judge(b, b_o, (F.pool_Pool_rule()), once[1], in_[8], room > 0 and room or 0)
 return b, b_o
end
F.pool_ownBurst = function(l) return l[4] > 0 and l[11] == 0 and l[5] ~= l[4] end -- internal/pool/model.go:282
F.meter_Ring_Follow = function(r, t, apart) -- internal/meter/follow.go:15
 if r[31] == 0 then r[27] = t end
 r[31] = apart > 1 and apart or 1
end
F.meter_Meter_Sync = function(m, d, r, t, most) -- internal/meter/follow.go:75
 local more = m[5] - most
 if more <= 0 or r == nil then return 0 end
 if d[1] == 0 then
  m[5], m[6], m[10] = most, 0, t + 1
  r[28] = r[28] + more
  if r[28] > 2251799813685248 then r[28], r[30] = more, 0 end
  r[29] = t
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then
  F.meter_Ring_came(r, d, t, more)
  local left, k = more, r[1]
  while left > 0 and k < r[1] + 512 do
   local c, c_o = F.meter_Ring_at(r, k)
   local part = c[c_o+1] < left and c[c_o+1] or left
   c[c_o+1] = c[c_o+1] - part
   left = left - part
   k = k + 1
  end
  m[5] = m[5] - more
  r[105] = t
 else return 0 end
 m[9] = m[9] < m[5] and m[9] or m[5]
 return more
end
F.pool_Pool_followRamp = function(g, who, who_o) -- internal/pool/ramps.go:90
 local i = once[26]
 while i ~= 0 do
  local of = S_gates[i] or ld(S_gates, i)
  if (of[11] ~= 0) and ((band(of[35], 4) == 0 or of[36] == who[who_o+3]) and (band(of[35], 16) == 0 or of[37] == who[who_o+5])) then
   F.pause_State_Follow(g, of)
   return 
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
end
F.pause_ramp_refuse = function(r, r_o, granted) -- internal/pause/ramp.go:207
 if r[r_o+2] ~= 0 and granted >= r[r_o+2] and granted <= r[r_o+3] then r[r_o+13] = r[r_o+13] + 1 end
end
F.pause_State_prolong = function(g, end_, every) -- internal/pause/pause.go:219
 if end_ > g[2] then
  g[2], g[10] = end_, every
  g[9] = max(g[9], min(end_, g[3] + every))
 end
end
F.pause_pauseFor = function(hint, b, b_o, n) -- internal/pause/pause.go:248
 if hint <= 0 then return F.pause_Backoff_after(b, b_o, n) end
 local least = F.pause_Backoff_after(({1000000,2,86400000000}), 0, n)
 return min(hint > least and hint or least, 86400000000)
end
F.pause_State_pause = function(g, t, end_, quiet) g[1], g[3], g[2], g[9], g[6] = 1, t, end_, quiet, 0 end -- internal/pause/pause.go:293
F.meter_Def_Reslice = function(d) -- internal/meter/def.go:60
 if d[2] ~= 2 then d[8] = max(d[6], (d[4] - fmod(d[4], 8)) / 8) end
 d[5] = max((quo(d[4] + 256 - 1, 256)), F.meter_ceilDiv(d[4] + d[8], 508))
end
F.meter_Meter_Turn = function(m, from, to, r, t, seen, unseen) -- internal/meter/turn.go:10
 if from[1] == 0 then
  unseen = unseen + r[3]
  m[4] = m[4] - r[3]
 end
 do
  local k = r[1]
  while k < r[1] + 512 do
   local t1_, t1_o = F.meter_Ring_at(r, k)
   t1_[t1_o+1] = 0
   k = k + 1
  end
 end
 for k = 0, 8 - 1 do r[(k)*2+9], r[(k)*2+10] = 0, 0 end
 r[3], r[2], r[8], r[25] = 0, 0, 0, 0
 r[1] = quo(t - to[4], to[5])
 m[2], m[3], m[6], m[7], m[8], m[9], m[10] = 0, 0, 0, 0, 0, 0, t
 m[5] = seen + unseen
 F.meter_Ring_arrive(r, t + ((r == nil or r[4] == 0) and to[6] or r[4]), unseen)
 local t3_, t3_o = F.meter_Ring_at(r, (t - fmod(t, to[5])) / to[5])
 t3_[t3_o+1] = t3_[t3_o+1] + seen
 local t4_, t4_o = F.meter_Ring_at(r, quo(t + ((r == nil or r[4] == 0) and to[6] or r[4]), to[5]))
 t4_[t4_o+1] = t4_[t4_o+1] + unseen
end
F.order_Queue_findLane = function(key) -- internal/order/index.go:54
 local h = F.order_LaneKey_hash(key)
 local i, p = indexSeek(X.laneIx, h, 0)
 while i ~= 0 do
  if same((S_qlanes[i] or ld(S_qlanes, i)), 0, key, 0, 3) then return i end
  i, p = indexSeek(X.laneIx, h, p)
 end
 return 0
end
F.order_Queue_findMember = function(lane, class, agent) -- internal/order/index.go:143
 local h = F.order_memberHash(lane, class, agent)
 local i, p = indexSeek(X.membIx, h, 0)
 while i ~= 0 do
  local m = S_qmembers[i] or ld(S_qmembers, i)
  if m[4] == agent and m[10] == class and m[5] == lane then return i end
  i, p = indexSeek(X.membIx, h, p)
 end
 return 0
end
F.order_correct = function(start, start_o, finish, finish_o, delta, waits) -- internal/order/tags.go:70
 local old = finish[finish_o+1]
 finish[finish_o+1] = max(old + delta, 0)
 if waits and start[start_o+1] == old then start[start_o+1] = finish[finish_o+1]
 elseif waits then
  start[start_o+1] = start[start_o+1] > finish[finish_o+1] and start[start_o+1] or finish[finish_o+1]
 end
end
F.order_Queue_partCost = function(l, class, i, cost) -- internal/order/tags.go:33
 local all, here = max((S_qdomains[l[i+4]] or ld(S_qdomains, l[i+4]))[class+3], 1), max(l[(class)*39+70], 1)
 return quo(mul(cost * 256, all), mul(cfg[class+101] > 1 and cfg[class+101] or 1, here))
end
F.order_domain_level = function(d) -- internal/order/queue.go:272
 if same(d, 2, ({0,0,0,0,0,0,0,0,0}), 0, 9) then d[1] = d[1] > d[2] and d[1] or d[2] end
end
F.order_Queue_rekey = function(member) -- internal/order/tags.go:81
 if cfg[84] == 2 then return end
 local f = (S_qmembers[member] or ld(S_qmembers, member))[7]
 while f ~= 0 do
  if (S_qflows[f] or ld(S_qflows, f))[16] == 0 then
   F.order_Queue_leave(f)
   F.order_Queue_enter(f)
  end
  f = (S_qflows[f] or ld(S_qflows, f))[15]
 end
end
F.meter_Meter_Brief = function(m, d, r) -- internal/meter/charge.go:196
 local slack = ((r == nil or r[4] == 0) and d[6] or r[4])
 if d[7] ~= 0 or (r ~= nil and r[4] ~= 0) then return slack end
 local back = d[4]
 if d[1] == 0 then
  if m[2] == 0 then return slack end
  back = quo(mul(m[1], m[3]), m[2])
 end
 return min(slack, max(3 * (quo(back + 10 - 1, 10)), 250000))
end
F.order_Queue_Number = function(w) return (S_qwaiters[w] or ld(S_qwaiters, w))[5] end -- internal/order/queue.go:202
F.meter_Meter_rate = function(m, d) -- internal/meter/withheld.go:14
 local n, w = 0, 0
 if d[9] == 0 or m[3] == 0 then return m[2], m[3] end
 n, w = mul(m[2], 4096 - d[9]), m[3]
 if w > 1099511627776 then n, w = (n - fmod(n, 8)) / 8, (quo(w + 8 - 1, 8)) end
 w = w * 4096
 while m[1] > ((4503599627370496 - fmod(4503599627370496, w)) / w) or n > ((4503599627370496 - fmod(4503599627370496, w)) / w) do
  if n == 0 then break end
  n, w = (n - fmod(n, 2)) / 2, (quo(w + 2 - 1, 2))
 end
 return n, w
end
F.flat_Tree_rotateUp = function(root, root_o, i) -- internal/flat/tree.go:124
 local n = S_tnodes[i] or ld(S_tnodes, i)
 local pi = n[6]
 local p, moved = S_tnodes[pi] or ld(S_tnodes, pi), 0
 if p[4] == i then moved, p[4], n[5] = n[5], n[5], pi
 else moved, p[5], n[4] = n[4], n[4], pi end
 if moved ~= 0 then
  local t1_ = (S_tnodes[moved] or ld(S_tnodes, moved))
  t1_[6] = pi
 end
 n[6], p[6] = p[6], i
 F.flat_Tree_replace(root, root_o, n[6], pi, i)
end
F.flat_Tree_replace = function(root, root_o, parent, old, now_) -- internal/flat/tree.go:141
 if parent == 0 then
  root[root_o+1] = now_
  return 
 end
 local p = S_tnodes[parent] or ld(S_tnodes, parent)
 if p[4] == old then p[4] = now_
 else p[5] = now_ end
end
F.flat_Key_Less = function(k, l) return k[1] < l[1] or (k[1] == l[1] and k[2] < l[2]) end -- internal/flat/tree.go:21
F.order_Queue_rankOf = function(class, lead, seq, strict) -- internal/order/heads.go:156
 if strict or cfg[84] == 1 then return {class,lead,seq}
 elseif cfg[84] == 2 then return {seq,0,0}
 else return {lead,class,seq} end
end
F.order_Queue_lead = function(l, class) -- internal/order/heads.go:146
 local most = 0
 if cfg[84] == 2 then return 0 end
 for k = 0, l[20] - 1 do
  most = max(most, l[(class)*39+(k)*2+34] - (S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4]))[12])
 end
 return most
end
F.order_rank_next = function(a, a_o) return {a[a_o+1],a[a_o+2],a[a_o+3] + 1} end -- internal/order/heads.go:107
F.order_Queue_dropLane = function(i) -- internal/order/index.go:102
 local l = S_qlanes[i] or ld(S_qlanes, i)
 if l[22] ~= 0 then
  local t1_ = (S_qlanes[l[22]] or ld(S_qlanes, l[22]))
  t1_[23] = l[23]
 else counts[14] = l[23] end
 if l[23] ~= 0 then
  local t2_ = (S_qlanes[l[23]] or ld(S_qlanes, l[23]))
  t2_[22] = l[22]
 end
 for k = 0, l[20] - 1 do F.order_Queue_leaveDomain(l[k+4]) end
 indexRemove(X.laneIx, F.order_LaneKey_hash(l), i)
 slabFree(S_qlanes, i)
end
F.pool_Pool_strictLane = function(lane, phase) -- internal/pool/pauses.go:194
 local i = once[26]
 while i ~= 0 do
  local g = S_gates[i] or ld(S_gates, i)
  if ((band(g[35], 4) == 0 or g[36] == lane[1]) and (band(g[35], 16) == 0 or g[37] == lane[2])) and g[1] >= phase and not (g[1] == 0 or (g[1] == 3 and g[12] ~= 0 and once[1] - g[12] >= 10000000)) then
   return true
  end
  i = (S_gates[i] or ld(S_gates, i))[41]
 end
 return false
end
F.meter_Meter_readyWithin = function(m, d, r, t, need, capacity) -- internal/meter/ready.go:24
 local deficit = need + F.meter_Meter_Used(m, d, r) - capacity
 if deficit <= 0 then return t end
 if d[1] == 3 then return 9007199254740992
 elseif d[1] == 0 then return F.meter_Meter_bucketReady(m, d, r, t, deficit)
 elseif (d[1] == 1 or (d[1] == 2 and m[8] == 0)) then
  local k = r[1]
  while k < r[1] + 512 do
   deficit = deficit - far(1, F.meter_Ring_at(r, k))
   if deficit <= 0 then return mul(k + 1, d[5]) + d[4] end
   k = k + 1
  end
  return 9007199254740992
 elseif m[4] + m[6] + need <= capacity then return m[8]
 elseif m[4] + need <= capacity then return m[8] + d[4]
 else return 9007199254740992 end
end
F.order_Queue_carry = function() -- internal/order/heads.go:121
 local t2_ = T[4]
 for t1_ = 0, #t2_ - 1 do
  local h = copy_(t2_[t1_+1], 0, 6)
  local k, l = 0, (S_qlanes[h[2]] or ld(S_qlanes, h[2]))
  while k < l[20] do
   local t3_ = (S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4]))
   t3_[12] = -9.2233720368547758e+18
   k = k + 1
  end
 end
 local t5_ = T[4]
 for t4_ = 0, #t5_ - 1 do
  local h = copy_(t5_[t4_+1], 0, 6)
  local l = S_qlanes[h[2]] or ld(S_qlanes, h[2])
  for k = 0, l[20] - 1 do
   local d = S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4])
   d[12] = max(d[12], l[(h[3])*39+(k)*2+34] + F.order_Queue_partCost(l, h[3] % 256, k, (S_qwaiters[h[1]] or ld(S_qwaiters, h[1]))[6]))
  end
 end
 local t8_ = T[4]
 for t7_ = 0, #t8_ - 1 do
  local h = copy_(t8_[t7_+1], 0, 6)
  local l = S_qlanes[h[2]] or ld(S_qlanes, h[2])
  for k = 0, l[20] - 1 do
   local d, t10_ = S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4]), (h[3])*39+(k)*2
   l[t10_+34] = l[t10_+34] + max(d[1] - d[12], 0)
  end
 end
 T[4] = {}
end
F.order_Queue_sooner = function(w, own) -- internal/order/ahead.go:63
 local sum_, wt = 0, S_qwaiters[w] or ld(S_qwaiters, w)
 local me = S_qflows[wt[1]] or ld(S_qflows, wt[1])
 local l = S_qlanes[me[10]] or ld(S_qlanes, me[10])
 local tag = {(S_qmembers[me[9]] or ld(S_qmembers, me[9]))[1] + own,wt[5]}
 local looks, n = 0, F.flat_Tree_Min(l[me[8]+25])
 while n ~= 0 and F.flat_Key_Less((F.flat_Tree_KeyOf(n)), tag) do
  looks = looks + 1
  if looks > 32 then return mul((sum_ - fmod(sum_, 32)) / 32, l[(me[8])*39+70]) end
  local fl = S_qflows[((S_tnodes[n] or ld(S_tnodes, n))[3])] or ld(S_qflows, ((S_tnodes[n] or ld(S_tnodes, n))[3]))
  if fl[9] ~= me[9] then
   local m = S_qmembers[fl[9]] or ld(S_qmembers, fl[9])
   sum_ = sum_ + min(max(tag[1] - m[1], (S_qwaiters[fl[11]] or ld(S_qwaiters, fl[11]))[6]), m[3])
  end
  n = F.flat_Tree_Next(n)
 end
 return sum_
end
F.order_Queue_higher = function(l, class, lead, ahead, above) -- internal/order/ahead.go:45
 local sum_ = 0
 local finish = l[(class)*39+(lead)*2+34] + F.order_Queue_partCost(l, class, lead, ahead < 17179869184 and ahead or 17179869184)
 for i = 0, 9 - 1 do
  local o, o_o = l, (i)*39+33
  if i == class or o[o_o+36] == 0 or (above and i > class) then
  elseif cfg[84] == 0 then
   local room = max(finish - o[o_o+(lead)*2+1], 0)
   sum_ = sum_ + min(quo(mul(room, cfg[i+101]), 256), o[o_o+35])
  elseif i < class then sum_ = sum_ + o[o_o+35] end
 end
 return sum_
end
F.meter_Meter_Estimate = function(m, d, r, t, ahead, need, window) -- internal/meter/ready.go:76
 if m[1] == 0 or d[1] == 3 then return t end
 if d[1] == 0 then
  local deficit, n, w = ahead + need - F.meter_Meter_Room(m, d, r), F.meter_Meter_rate(m, d)
  if deficit <= 0 or n == 0 then return t end
  return min(t + quo(mul(min(deficit, (9007199254740992 - fmod(9007199254740992, w)) / w), w) - m[6], n), 9007199254740992)
 end
 local capacity = max((((r == nil or r[5] == 0) and m[1] or F.meter_Meter_less(m, r[5])) - ((d[9] == 0) and 0 or quo(mul(m[1], d[9]), 4096))), 1)
 if (d[1] == 2 and m[8] ~= 0) then
  local left = ahead + need - max(F.meter_Meter_Room(m, d, r), 0)
  if left <= 0 then return t end
  return min(m[8] + mul(min(quo(left - 1, capacity), (9007199254740992 - fmod(9007199254740992, d[4])) / d[4]), d[4]), 9007199254740992)
 end
 local rounds = quo(ahead + need - 1, capacity)
 local at = F.meter_Meter_ReadyAt(m, d, r, t, ahead + need - mul(rounds, capacity))
 if at == 9007199254740992 then at = t end
 return min(at + mul(min(rounds, (9007199254740992 - fmod(9007199254740992, window)) / window), window), 9007199254740992)
end
F.pool_Pool_backWithin = function(in_, d) -- internal/pool/model.go:320
 if in_[28] == 0 or d[1] ~= 1 then return d[4] end
 local m = S_models[in_[28]] or ld(S_models, in_[28])
 if m[24] == 0 or m[26] ~= 0 or m[20] > 0 or m[13] <= 0 then return d[4] end
 return min(d[4], m[13] + 1200000)
end
F.meter_Ring_stood = function(r, t, level) -- internal/meter/ring.go:74
 if r == nil then return end
 local m, m_o = r, (fmod((t - fmod(t, 30000000)) / 30000000, 8))*2+8
 if m[m_o+1] == ((t - fmod(t, 30000000)) / 30000000) then m[m_o+2] = m[m_o+2] < level and m[m_o+2] or level
 else m[m_o+1], m[m_o+2] = (t - fmod(t, 30000000)) / 30000000, level end
end
F.meter_Ring_came = function(r, d, t, amount) -- internal/meter/ring.go:41
 if t - r[(fmod(r[25], 8))*2+9] >= ((d[4] - fmod(d[4], 64)) / 64) then
  r[25] = r[25] + 1
  r[(fmod(r[25], 8))*2+9], r[(fmod(r[25], 8))*2+10] = t, r[8]
 end
 r[8] = r[8] + amount
end
F.meter_ceilDiv = function(a, b) return quo(a + b - 1, b) end -- internal/meter/meter.go:228
F.order_Queue_partOf = function(m) return (S_qlanes[m[5]] or ld(S_qlanes, m[5])), (m[10])*39+33 end -- internal/order/tags.go:143
F.order_Queue_dropMember = function(i) -- internal/order/index.go:166
 local m = S_qmembers[i] or ld(S_qmembers, i)
 F.order_Queue_leaveIdle(i)
 indexRemove(X.membIx, F.order_memberHash(m[5], m[10], m[4]), i)
 if m[4] ~= 0 then F.flat_Names_Drop(m[4]) end
 slabFree(S_qmembers, i)
end
F.meter_Meter_undrain = function(m, r, t, mark, amount) -- internal/meter/charge.go:275
 if mark < m[10] then return end
 local still = amount
 if m[2] > 0 then
  still = 0
  if t - mark <= ((4503599627370496 - fmod(4503599627370496, m[2])) / m[2]) then
   still = amount - F.meter_ceilDiv(mul(t - mark, m[2]), m[3])
  end
 end
 local back = min(max(still, F.meter_Ring_lowest(r, mark, t)), ((m[6] > 0) and m[5] - 1 or m[5]), amount)
 if back <= 0 then return end
 F.meter_Ring_lower(r, mark, t, back)
 m[5] = m[5] - back
end
F.pause_ramp_learn = function(r, r_o, t) -- internal/pause/ramp.go:240
 if r[r_o+16] + r[r_o+13] >= r[r_o+4] then r[r_o+16], r[r_o+14] = 0, r[r_o+2] end
 local got = r[r_o+4] - r[r_o+13] - r[r_o+16]
 if r[r_o+1] == 0 or r[r_o+13] == 0 or got < 1 or t <= r[r_o+2] then return end
 local span = t - r[r_o+2]
 if r[r_o+18] == 0 then r[r_o+18], r[r_o+19] = got, F.pause_wide(t - r[r_o+14])
 elseif got >= r[r_o+18] then
  local latest = t - F.pause_ramp_nth(r, r_o, r[r_o+17] + got - r[r_o+18])
  span = min(mul((span - fmod(span, got)) / got, r[r_o+18]), latest + ((latest - fmod(latest, 4)) / 4))
  r[r_o+19] = max(span, r[r_o+19] + ((r[r_o+19] - fmod(r[r_o+19], 16)) / 16))
  r[r_o+22], r[r_o+23] = min(16 * (r[r_o+22] > 1 and r[r_o+22] or 1), 64), 0
 elseif not F.pause_ramp_longer(r, r_o, got, span, t) then
  r[r_o+20], r[r_o+18], r[r_o+19] = ((r[r_o+20] ~= 0 or 2 * got < r[r_o+18]) and 1 or 0), got, span
 end
 r[r_o+17] = r[r_o+17] + got
 if r[r_o+20] ~= 0 then r[r_o+17] = 0 end
end
F.pause_ramp_thin = function(r, r_o, n) -- internal/pause/ramp.go:197
 local last = quo(quo(n - 1, r[r_o+24]), 2)
 local old, i = copy_(r.marks, 0, 512), max(last - 256 + 1, 0)
 while i <= last do
  r.marks[fmod(i, 512)+1] = old[fmod(2 * i, 512)+1]
  i = i + 1
 end
 r[r_o+24] = r[r_o+24] * 2
end
F.pause_ramp_mark = function(r, r_o, t) -- internal/pause/ramp.go:184
 local n = (r[r_o+17] + r[r_o+4] - r[r_o+16])
 if r[r_o+1] ~= 0 then
  if r[r_o+18] == 0 and n == 512 * r[r_o+24] then F.pause_ramp_thin(r, r_o, n) end
  if fmod(n, r[r_o+24]) == 0 then r.marks[fmod((n - fmod(n, r[r_o+24])) / r[r_o+24], 512)+1] = t end
 end
 r[r_o+4] = r[r_o+4] + 1
end
F.store_Amount_concerns = function(a, l) -- store/store.go:450
 if a[2] ~= "" then return a[2] == l[1] and (a[1] == "" or a[1] == l[3]) end
 return a[1] == l[3]
end
F.pool_Pool_uncharged = function(i) -- internal/pool/crowd.go:58
 local in_, _, r = F.pool_Pool_touch(i)
 return (in_[4] == 0 and in_[5] == 0 and in_[9] == 0) and (r == nil or r[3] == 0)
end
F.meter_Def_NeedsRing = function(d) -- internal/meter/def.go:68
 local t1_ = d[1]
 if t1_ == 0 then return d[2] ~= 2
 elseif t1_ == 1 then return true
 elseif t1_ == 2 then return d[2] ~= 2
 else return false end
end
F.meter_Meter_Start = function(m, d, r, t, size, burst, reset) -- internal/meter/def.go:104
 local err = F.meter_Meter_Resize(m, d, size, burst)
 if err and true or false then return err end
 if d[1] == 0 then
  m[7] = t
  if r ~= nil then r[1] = (t - fmod(t, d[5])) / d[5] end
 elseif (d[1] == 2 and d[2] == 2) then
  m[8] = F.meter_nextReset(reset, d[4], t)
  m[7], m[10] = m[8], m[8] - d[4]
 elseif (d[1] == 2 and reset ~= 0 and (2 * (2400000 > d[6] and 2400000 or d[6]) <= d[4])) then
  local next_ = F.meter_nextReset(reset, d[4], t)
  m[7], m[8] = next_ - 1200000, next_ + 1200000
  m[10] = m[7] - d[4]
 else
  if r ~= nil then r[1] = quo(t - d[4], d[5]) end
 end
 return nil
end
F.pool_Pool_resetOf = function(limit, scope, scope_o) -- internal/pool/crowd.go:88
 local l = (S_limits[limit+1] or ld(S_limits, limit+1))
 if l[7] ~= 0 and F.meter_Def_NeedsRing((S_defs[limit+1] or ld(S_defs, limit+1))) and same(scope, scope_o, (F.pool_Pool_crowdScope(l[7])), 0, 5) then
  return 0
 end
 return l[14]
end
F.pool_Pool_enroll = function(limit, scope, scope_o, i) -- internal/pool/crowd.go:64
 local per = (S_limits[limit+1] or ld(S_limits, limit+1))[7]
 if per == 0 then return end
 once[limit+65] = once[limit+65] + 1
 if same(scope, scope_o, (F.pool_Pool_crowdScope(per)), 0, 5) then once[limit+81], once[limit+97] = i, 0 end
end
F.pool_Pool_anyKnown = function() -- internal/pool/pool.go:250
 for i = 0, cfg[4] - 1 do if (S_limits[i+1] or ld(S_limits, i+1))[4] > 0 then return true end end
 return false
end
F.pool_Pool_startRamp = function(scope, model, key) -- internal/pool/ramps.go:36
 if scope ~= 0 and slabLen(S_gates) >= 128 then return end
 local g = S_gates[F.pool_Pool_pauseOf(scope, model, key)] or ld(S_gates, F.pool_Pool_pauseOf(scope, model, key))
 if (g[1] == 0 and g[3] == 0 and g[2] == 0) then F.pause_State_StartRamp(g, once[1]) end
end
F.policy_Floor_At = function(l, t) -- internal/policy/floor.go:17
 if l[2] == 0 then return l[1] end
 local left = min(max(l[3] - t, 0), l[2])
 return floor(((l[1] * left) / l[2]) + 0.5)
end
F.policy_Floor_When = function(l, t, left) -- internal/policy/floor.go:26
 if F.policy_Floor_At(l, t) <= left then return t
 elseif l[2] == 0 or left < 0 then return 9007199254740992 end
 local at = l[3] - floor(((left + 0.5) * l[2]) / l[1])
 while F.policy_Floor_At(l, at) > left do at = at + 1 end
 return at > t and at or t
end
F.pool_Pool_amber = function(in_, d, room, size) -- internal/pool/stock.go:266
 if not (cfg[29] > 0 and (cfg[32] ~= 0 or d[4] >= quo(600000000000, 1000))) then return false end
 local green = {F.policy_Part(size, cfg[29]),d[4],in_[8]}
 if cfg[31] ~= 0 then green[2] = 0 end
 return room < F.policy_Floor_At(green, once[1])
end
F.pool_Pool_living = function() -- internal/pool/leases.go:42
 local set = 0
 for c = 0, cfg[3] - 1 do
  if (cfg[49] > 0 and (once[1] < once[c+11] or F.order_Queue_Waiting(c + 1) > 0 or (c == 0 and (counts[0+5]) > 0))) then
   set = bor(set, (1 * 2^(c)))
  end
 end
 return set
end
F.policy_Shares_Floor = function(s, class, light) -- internal/policy/share.go:38
 local highest, others = 0, 0
 for i = 0, 8 - 1 do
  local t2_ = i
  if t2_ == class then
  elseif t2_ == 0 then highest = (max(F.policy_Shares_Guaranteed(s, i) - s[i+10], 0))
  else others = others + (max(F.policy_Shares_Guaranteed(s, i) - s[i+10], 0)) end
 end
 if s[class+10] >= F.policy_Shares_Guaranteed(s, class) and highest + others > 0 then
  highest = highest > light and highest or light
 end
 return highest + others
end
F.pool_Pool_nextDeath = function(but) -- internal/pool/leases.go:53
 local at = 9007199254740992
 for c = 0, cfg[3] - 1 do if c ~= but then at = min(at, F.pool_Pool_deathOf(c)) end end
 return at
end
F.pool_Pool_hasPerson = function(tk, in_) -- internal/pool/plan.go:10
 if (cfg[49] > 0 and (once[1] < once[0+11] or F.order_Queue_Waiting(0 + 1) > 0 or (0 == 0 and (counts[0+5]) > 0))) or F.pool_Pool_stockOf(in_)[2] > 0 then
  return true
 end
 for k = 0, tk[25] - 1 do
  local c, c_o = tk, (k)*5+35
  if (S_limits[c[c_o+5]+1] or ld(S_limits, c[c_o+5]+1))[13] ~= 0 then
   local other = S_insts[c[c_o+4]] or ld(S_insts, c[c_o+4])
   if other[8] > once[1] and F.pool_Pool_stockOf(other)[2] > 0 then return true end
  end
 end
 return false
end
F.policy_Ease = function(window) return min(900000000, (window - fmod(window, 20)) / 20) end -- internal/policy/plan.go:11
F.policy_EaseFloor = function(size, opened, eased) return {size,5 * eased,opened + 5 * eased} end -- internal/policy/plan.go:15
F.policy_Breaker_Press = function(b, b_o, t) if b[b_o+1] ~= 0 then b[b_o+7] = t end end -- internal/policy/breaker.go:151
F.policy_Breaker_Allow = function(b, b_o, t) -- internal/policy/breaker.go:189
 local ok, at = false, 0
 if b[b_o+1] ~= 0 then
  return b[b_o+8] == 0, min(b[b_o+4], ((b[b_o+12] < 3) and b[b_o+4] or (F.policy_Breaker_at(b, b_o, b[b_o+12] - 3))[1] + 120000000 + 1))
 end
 local step_ = quo(t - b[b_o+13], 500000)
 b[b_o+9] = (b[b_o+9] ~= 0 and step_ < 20) and 1 or 0
 if b[b_o+9] == 0 then return true, 0 end
 return b[b_o+14] < (1 * 2^((step_ > 0 and step_ or 0))), b[b_o+13] + (step_ + 1) * 500000
end
F.pause_ramp_grant = function(r, r_o, t) -- internal/pause/ramp.go:147
 if r[r_o+2] == 0 then r[r_o+2] = t end
 F.pause_ramp_pass(r, r_o, t)
 if F.pause_ramp_rested(r, r_o, t) then
  r[r_o+15] = (r[r_o+4] + r[r_o+17] > 0) and 1 or 0
  r[r_o+14], r[r_o+16], r[r_o+17], r[r_o+24] = t, r[r_o+4], 0, 1
 end
 local bound = F.pause_ramp_bound(r, r_o)
 if bound > ((r[r_o+3] == 0) and 0 or r[r_o+3] + F.pause_gap(min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4]))))) then
  if t - bound < 500000 then r[r_o+21] = r[r_o+21] + 1 end
 elseif r[r_o+3] == 0 or t - r[r_o+3] <= 2 * F.pause_gap(min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4])))) then
  r[r_o+7] = r[r_o+7] + 1
 end
 if r[r_o+18] > 0 and r[r_o+21] >= mul(max(8, 4 * r[r_o+18]), r[r_o+22] > 1 and r[r_o+22] or 1) then
  r[r_o+21], r[r_o+19] = 0, r[r_o+19] - quo(r[r_o+19], 10 * (r[r_o+22] > 1 and r[r_o+22] or 1))
 end
 F.pause_ramp_mark(r, r_o, t)
 r[r_o+3] = t
end
F.order_Queue_laneOf = function(key, costs) -- internal/order/index.go:64
 do
  local i = F.order_Queue_findLane(key)
  if i ~= 0 then
   F.order_Queue_rebind(i, costs)
   return i
  end
 end
 local i = slabNew(S_qlanes)
 local l = S_qlanes[i] or ld(S_qlanes, i)
 move(l, 0, key, 0, 3)
 l[23] = counts[14]
 l[20] = (costs[33] + 2147483648) % 4294967296 - 2147483648
 for k = 0, costs[33] - 1 do l[k+4] = F.order_Queue_domainOf(costs[k+1]) end
 if counts[14] ~= 0 then
  local t2_ = (S_qlanes[counts[14]] or ld(S_qlanes, counts[14]))
  t2_[22] = i
 end
 counts[14] = i
 indexAdd(X.laneIx, F.order_LaneKey_hash(key), i)
 return i
end
F.order_Queue_memberOf = function(lane, class, agent) -- internal/order/index.go:154
 do
  local i = F.order_Queue_findMember(lane, class, agent)
  if i ~= 0 then return i end
 end
 local i = slabNew(S_qmembers)
 local m = S_qmembers[i] or ld(S_qmembers, i)
 m[4], m[10], m[5] = agent ~= 0 and F.flat_Names_Keep(agent) or 0, class, lane
 indexAdd(X.membIx, F.order_memberHash(lane, class, agent), i)
 F.order_Queue_enterIdle(i)
 return i
end
F.meter_Rate = function(size, window, capacity) -- internal/meter/def.go:84
 local n, w, err = 0, 0, nil
 n, w = size, window
 local a, b = n, w
 while true do
  if b == 0 then
   n, w = (n - fmod(n, a)) / a, (w - fmod(w, a)) / a
   break
  end
  a, b = b, fmod(a, b)
 end
 while capacity > ((4503599627370496 - fmod(4503599627370496, w)) / w) or n > ((4503599627370496 - fmod(4503599627370496, w)) / w) do
  if n < 2048 then return 0, 0, "error" end
  n, w = (n - fmod(n, 2)) / 2, (quo(w + 2 - 1, 2))
 end
 return n, w, nil
end
F.pause_State_LimitsKnown = function(g) -- internal/pause/pause.go:172
 g[11], g[28], g[30] = 0, 0, 0
 if g[1] == 3 and g[3] == 0 then g[1] = 0 end
end
F.meter_Ring_Rescale = function(r, from, to, t) -- internal/meter/ring.go:135
 r[8], r[2], r[25] = F.meter_Ring_Recent(r, from, t), 0, (t - fmod(t, to[4])) / to[4]
end
F.meter_DrainTime = function(size, window, amount) -- internal/meter/turn.go:64
 local n, w, err = F.meter_Rate(size, window, size)
 if err and true or false then return 0, false end
 return F.meter_ceilDiv(mul(amount, w), n), true
end
F.meter_Ring_goneSince = function(r, d, t) -- internal/meter/ring.go:50
 local n, k = r[8], r[25]
 while k > r[25] - 8 do
  if k <= 0 then return r[8], true end
  local m, m_o = r, (fmod(k, 8))*2+8
  if t - m[m_o+1] >= ((d[4] - fmod(d[4], 64)) / 64) then return r[8] - n, true end
  if m[m_o+1] <= t then return r[8] - m[m_o+2], true end
  n = m[m_o+2]
  k = k - 1
 end
 return 0, false
end
F.meter_Ring_recalled = function(r, made) -- internal/meter/follow.go:57
 if r == nil or r[28] == 0 or r[29] < made then return 0, true end
 if r[27] <= made then return r[28] - r[30], true end
 local k = r[32]
 while k > max(r[32] - 24, 0) do
  local n, n_o = r, (fmod(k, 24))*3+32
  if n[n_o+1] <= made then return r[28] - n[n_o+3], true end
  k = k - 1
 end
 return 0, false
end
F.meter_Ring_Unseen = function(r, made) -- internal/meter/follow.go:41
 if r == nil or r[31] == 0 then return 0, false end
 if r[27] <= made then return 0, true end
 local k = r[32]
 while k > max(r[32] - 24, 0) do
  local n, n_o = r, (fmod(k, 24))*3+32
  if n[n_o+1] <= made then return r[26] - n[n_o+2], true end
  k = k - 1
 end
 return 0, false
end
F.policy_Breaker_at = function(b, b_o, i) return copy_(b.ring, (fmod(b[b_o+11] + i, 64))*2, 2) end -- internal/policy/breaker.go:185
F.policy_Breaker_close = function(b, b_o, t) -- internal/policy/breaker.go:123
 if b[b_o+1] ~= 0 then b[b_o+1], b[b_o+9], b[b_o+13], b[b_o+14] = 0, 1, t, 0 end
end
F.policy_Breaker_keep = function(b, b_o, n) -- internal/policy/breaker.go:179
 local drop = b[b_o+12] - (((n > 0 and n or 0) + 2147483648) % 4294967296 - 2147483648)
 if drop > 0 then b[b_o+11], b[b_o+12], b[b_o+10] = fmod(b[b_o+11] + drop, 64), b[b_o+12] - drop, 1 end
end
F.policy_Breaker_Judge = function(b, b_o, r, t, reset, room) -- internal/policy/breaker.go:82
 if b[b_o+4] ~= 0 and b[b_o+4] <= t then F.policy_Breaker_over(b, b_o, b[b_o+4]) end
 F.policy_Breaker_keep(b, b_o, r[2] < 64 and r[2] or 64)
 F.policy_Breaker_age(b, b_o, t)
 if b[b_o+12] < 3 and not (b[b_o+1] ~= 0 and b[b_o+8] == 0 and b[b_o+7] >= b[b_o+2] and t - b[b_o+7] <= 120000000) then
  F.policy_Breaker_close(b, b_o, t)
 end
 b[b_o+8] = (r[3] ~= 0) and 1 or 0
 F.policy_Breaker_follow(b, b_o, t, reset)
 F.policy_Breaker_forecast(b, b_o)
 if b[b_o+1] ~= 0 or b[b_o+5] == 0 or b[b_o+4] == 0 then return end
 if b[b_o+5] < b[b_o+4] and b[b_o+5] - t <= r[1] then F.policy_Breaker_trip(b, b_o, t, room > 0 and room or 0) end
end
F.pause_State_Follow = function(g, of) move(g, 10, of, 10, 24) end -- internal/pause/pause.go:168
F.pause_Backoff_after = function(b, b_o, n) -- internal/pause/pause.go:41
 local d = b[b_o+1]
 while n > 1 and d < b[b_o+3] do
  d = mul(d, b[b_o+2] > 1 and b[b_o+2] or 1)
  if b[b_o+2] <= 1 then break end
  n = n - 1
 end
 return d < b[b_o+3] and d or b[b_o+3]
end
F.order_Queue_leaveDomain = function(i) -- internal/order/index.go:135
 local d = S_qdomains[i] or ld(S_qdomains, i)
 d[14] = d[14] - 1
 if d[14] == 0 then
  indexRemove(X.domIx, F.order_onHash(d[13]), i)
  slabFree(S_qdomains, i)
 end
end
F.meter_Meter_bucketReady = function(m, d, r, t, deficit) -- internal/meter/ready.go:51
 local probe = {m[1],m[2],m[3],0,m[5],m[6],t,0,0,0}
 if r ~= nil then
  local k, left = r[1], r[3]
  while left > 0 and deficit > probe[5] do
   local c = far(1, F.meter_Ring_at(r, k))
   if c ~= 0 then
    left = left - c
    local before = probe[5]
    F.meter_Meter_drain(probe, d, mul(k + 1, d[5]))
    deficit = deficit - (before - probe[5])
    F.meter_Meter_fill(probe, d, nil, c)
   end
   k = k + 1
  end
 end
 local n, w = F.meter_Meter_rate(m, d)
 if deficit > probe[5] or n == 0 then return 9007199254740992 end
 return probe[7] + F.meter_ceilDiv(mul(deficit, w) - probe[6], n)
end
F.flat_Tree_Next = function(i) -- internal/flat/tree.go:104
 local right = (S_tnodes[i] or ld(S_tnodes, i))[5]
 if right ~= 0 then return F.flat_Tree_Min(right) end
 while true do
  local parent = (S_tnodes[i] or ld(S_tnodes, i))[6]
  if parent == 0 or (S_tnodes[parent] or ld(S_tnodes, parent))[4] == i then return parent end
  i = parent
 end
end
F.meter_Ring_lowest = function(r, from, to) -- internal/meter/ring.go:86
 if r == nil or ((to - fmod(to, 30000000)) / 30000000) - ((from - fmod(from, 30000000)) / 30000000) >= 8 then
  return 0
 end
 local level, k = 1099511627776, (from - fmod(from, 30000000)) / 30000000
 while k <= ((to - fmod(to, 30000000)) / 30000000) do
  local m, m_o = r, (fmod(k, 8))*2+8
  if m[m_o+1] == k then level = level < m[m_o+2] and level or m[m_o+2] end
  k = k + 1
 end
 return level
end
F.pause_wide = function(span) return span + ((span - fmod(span, 50)) / 50) + 50000 end -- internal/pause/ramp.go:289
F.pause_ramp_longer = function(r, r_o, got, span, t) -- internal/pause/ramp.go:270
 if r[r_o+20] ~= 0 or 2 * got >= r[r_o+18] then return false end
 r[r_o+23] = r[r_o+23] + 1
 if (r[r_o+22] > 0 and r[r_o+23] == 1) then r[r_o+19] = r[r_o+19] + ((r[r_o+19] - fmod(r[r_o+19], 8)) / 8)
 elseif r[r_o+15] == 0 or mul(r[r_o+18], (span - fmod(span, got)) / got) < 120000000 or t - r[r_o+14] > 67500000 then
  return false
 elseif r[r_o+23] == 1 then r[r_o+19] = F.pause_wide(t - r[r_o+14])
 else r[r_o+19] = F.pause_wide(max(t - r[r_o+14], 60000000)) end
 return true
end
F.meter_nextReset = function(reset, window, t) -- internal/meter/def.go:139
 local k = quo(t - reset, window)
 local next_ = reset + mul(k, window)
 while next_ <= t do next_ = next_ + window end
 return next_
end
F.pause_State_StartRamp = function(g, t) -- internal/pause/pause.go:155
 g[1], g[2] = 3, t
 g[11] = 1
 F.pause_ramp_begin(g, 10, t, 0)
end
F.policy_Shares_Guaranteed = function(s, class) -- internal/policy/share.go:17
 if band(s[18], (1 * 2^(class))) == 0 then return 0 end
 local sum_ = 0
 for i = 0, 8 - 1 do
  local w = s[i+2]
  if band(s[18], (1 * 2^(i))) ~= 0 then sum_ = sum_ + w end
 end
 return mul((s[1] - fmod(s[1], sum_)) / sum_, s[class+2]) + quo(mul(fmod(s[1], sum_), s[class+2]), sum_)
end
F.pause_ramp_rested = function(r, r_o, t) -- internal/pause/ramp.go:173
 if r[r_o+1] == 0 or r[r_o+18] > 0 then return false
 elseif r[r_o+6] < r[r_o+3] then
  return t - ((r[r_o+3] == 0) and 0 or r[r_o+3] + F.pause_gap(min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4]))))) > 3000000
 end
 return t - max(((r[r_o+3] == 0) and 0 or r[r_o+3] + F.pause_gap(min(r[r_o+7], (min(r[r_o+5] > r[r_o+12] and r[r_o+5] or r[r_o+12], r[r_o+4]))))), r[r_o+6]) > 1000000
end
F.order_Queue_rebind = function(i, costs) -- internal/order/index.go:85
 local l = S_qlanes[i] or ld(S_qlanes, i)
 if l[21] > 0 then return end
 for k = 0, l[20] - 1 do
  if (S_qdomains[l[k+4]] or ld(S_qdomains, l[k+4]))[13] ~= costs[k+1] then
   F.order_Queue_leaveDomain(l[k+4])
   l[k+4] = F.order_Queue_domainOf(costs[k+1])
   for c = 0, 9 - 1 do clear_(l, (c)*39+(k)*2+33, 2) end
  end
 end
end
F.order_Queue_domainOf = function(on) -- internal/order/index.go:120
 local h = F.order_onHash(on)
 do
  local i, p = indexSeek(X.domIx, h, 0)
  while i ~= 0 do
   local d = S_qdomains[i] or ld(S_qdomains, i)
   if d[13] == on then
    d[14] = d[14] + 1
    return i
   end
   i, p = indexSeek(X.domIx, h, p)
  end
 end
 local i = slabNew(S_qdomains)
 local d = S_qdomains[i] or ld(S_qdomains, i)
 d[13], d[14] = on, 1
 indexAdd(X.domIx, h, i)
 return i
end
F.policy_Breaker_over = function(b, b_o, t) -- internal/policy/breaker.go:131
 F.policy_Breaker_age(b, b_o, t)
 F.policy_Breaker_close(b, b_o, t)
 b[b_o+4] = 0
 F.policy_Breaker_forget(b, b_o, t)
end
F.policy_Breaker_age = function(b, b_o, t) -- internal/policy/breaker.go:140
 if b[b_o+12] >= 3 then
  local third = (F.policy_Breaker_at(b, b_o, b[b_o+12] - 3))[1]
  if third < t - 120000000 and not (b[b_o+1] ~= 0 and b[b_o+8] == 0 and b[b_o+7] >= b[b_o+2] and t - b[b_o+7] <= 120000000) then
   F.policy_Breaker_close(b, b_o, (third > b[b_o+7] and third or b[b_o+7]) + 120000000 + 1)
  end
 end
 F.policy_Breaker_forget(b, b_o, t - 120000000)
end
F.policy_Breaker_follow = function(b, b_o, t, reset) -- internal/policy/breaker.go:104
 if reset <= 0 then
  F.policy_Breaker_close(b, b_o, t)
  b[b_o+4] = 0
 elseif reset <= t then F.policy_Breaker_over(b, b_o, t)
 elseif b[b_o+1] ~= 0 then b[b_o+4] = reset < b[b_o+6] and reset or b[b_o+6]
 else b[b_o+4] = reset end
end
F.policy_Breaker_forecast = function(b, b_o) -- internal/policy/breaker.go:217
 if b[b_o+10] == 0 then return end
 b[b_o+10], b[b_o+5] = 0, 0
 if b[b_o+12] < 3 then return end
 local n, last, mx, my = b[b_o+12], F.policy_Breaker_at(b, b_o, b[b_o+12] - 1), 0, 0
 for i = 0, b[b_o+12] - 1 do
  local s = F.policy_Breaker_at(b, b_o, i)
  mx = mx + (s[1] - last[1])
  my = my + (s[2] - last[2])
 end
 mx = mx / n
 my = my / n
 local xx, xy = 0, 0
 for i = 0, b[b_o+12] - 1 do
  local s = F.policy_Breaker_at(b, b_o, i)
  local dx, dy = (s[1] - last[1]) - mx, (s[2] - last[2]) - my
  xx = xx + (dx * dx)
  xy = xy + (dx * dy)
 end
 if xy >= 0 then return end
 local ahead = mx - (((last[2] + my) * xx) / xy)
 if ahead <= 86400000000 then b[b_o+5] = max(last[1] + floor(ahead), 1) end
end
F.policy_Breaker_trip = function(b, b_o, t, room) -- internal/policy/breaker.go:118
 b[b_o+1], b[b_o+2], b[b_o+3], b[b_o+6] = 1, t, room, b[b_o+4] + (b[b_o+4] - t)
end
F.policy_Breaker_forget = function(b, b_o, t) -- internal/policy/breaker.go:170
 local n = b[b_o+12]
 while n > 0 and (F.policy_Breaker_at(b, b_o, b[b_o+12] - n))[1] < t do n = n - 1 end
 F.policy_Breaker_keep(b, b_o, n)
end
