package golua

import (
	"errors"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/store"
)

// Output is a translated pool.
type Output struct {
	Lua    string
	Layout Layout
}

// Layout is how the script lays out the state of a pool.
type Layout struct {
	Slabs  []Slab
	Config []CfgField
}

// Slab is how the records of a slab are stored.
type Slab struct {
	Name  string
	Key   string // the prefix of its fields in the hash
	Slots int    // of a record, without the link to the next free one
}

// Generate translates the pool of the module in root.
func Generate(root string) (out Output, err error) {
	defer rescue(&err)
	prog, err := load(root, "store", "internal/flat", "internal/meter", "internal/order", "internal/pause", "internal/policy", "internal/pool")
	if err != nil {
		return out, err
	}
	tr := newTranslator(prog)
	tr.slab("defs", prog.lookup("internal/meter.Def").Type())
	tr.slab("limits", prog.lookup("store.Limit").Type())
	pool := prog.lookup("internal/pool.Pool")
	var roots []*types.Func
	for _, name := range []string{"Apply", "begin", "carryOut", "BeginFast", "EndFast", "FastLot", "FastEnds", "SpellOut", "enterTallies", "crowdCaller"} {
		f, _, _ := types.LookupFieldOrMethod(types.NewPointer(pool.Type()), true, pool.Pkg(), name)
		roots = append(roots, f.(*types.Func))
	}
	tr.translate(roots...)
	if err := errors.Join(tr.refused...); err != nil {
		return out, err
	}
	tr.cfg.at("widest", 1)
	out.Layout = tr.layout()
	main, err := os.ReadFile(filepath.Join(root, "store/redisstore/lua/main.lua"))
	if err != nil {
		return out, err
	}
	declarations := tr.declarations(out.Layout)
	out.Lua = declarations + tidy(dropUnused(inline(tr.out.String(), tr.kinds), declarations+string(main)))
	return out, nil
}

// Functions translates functions of a package that do not use a pool, for tests.
func Functions(root, pkg string, names ...string) (lua string, err error) {
	defer rescue(&err)
	prog, err := load(root, pkg)
	if err != nil {
		return "", err
	}
	tr := newTranslator(prog)
	for _, name := range names {
		tr.translate(prog.lookup(pkg + "." + name).(*types.Func))
	}
	return tidy(inline(tr.out.String(), tr.kinds)), errors.Join(tr.refused...)
}

func newTranslator(prog *program) *translator {
	tr := &translator{prog: prog, seen: map[*types.Func]bool{}, slabs: map[string]types.Type{}, single: map[string]types.Type{}, kinds: map[string]byte{}}
	tr.findInner()
	return tr
}

// rescue turns a panic of the translator into an error.
func rescue(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(error)
		if !ok {
			panic(r)
		}
		*err = e
	}
}

// layout gives every slab its key. The slab of names comes first, because the runtime knows it.
func (tr *translator) layout() Layout {
	l := Layout{Config: tr.cfg.fields}
	l.Slabs = append(l.Slabs, Slab{Name: "names", Key: "N", Slots: 3})
	for i, n := range slices.Sorted(maps.Keys(tr.slabs)) {
		l.Slabs = append(l.Slabs, Slab{Name: n, Key: string(rune('A'+i%13)) + strings.Repeat("'", i/13), Slots: slots(tr.slabs[n])})
	}
	return l
}

// declarations returns the Lua variables and functions that the translated functions and main.lua use by name.
func (tr *translator) declarations(l Layout) string {
	var b strings.Builder
	result, _ := tr.fieldAt("store.Op", "Result")
	fmt.Fprintf(&b, "local resultAt, resultSlots = %d, %d\n", result, slots(tr.prog.lookup("store.Result").Type()))
	var names []string
	for _, s := range l.Slabs[1:] {
		names = append(names, "S_"+s.Name)
	}
	singles := slices.Sorted(maps.Keys(tr.single))
	all := append([]string{"S_names"}, names...)
	for _, n := range append(slices.Clone(singles), "cfg", "tree") {
		all = append(all, "S_"+n)
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == "S_names" || n == "S_tickets" }) // the runtime has these
	fmt.Fprintf(&b, "local %s\nlocal cfg, tree, %s, unscoped\n", strings.Join(ours, ", "), strings.Join(singles, ", "))
	most := 0
	fmt.Fprintf(&b, "-- What lives as long as the pool is known, and not only as long as a call.\nlocal function setAside()\n if known then known.tallies, known.tell, known.before = T[%d], T[%d], T[%d] end\n T[%[1]d], T[%[2]d], T[%[3]d] = {}, {}, {}\nend\n",
		transients["pool.crew.tallies"]+1, transients["pool.crew.told"]+1, transients["pool.crew.before"]+1)
	fmt.Fprintf(&b, "local function useSlabs(s)\n %s = unpack(s)\nend\n", strings.Join(all, ", "))
	b.WriteString("local function begin()\n setAside()\n known = {count = 0, calls = 0, items = 0, since = 0, expires = 0, entries = {}, numbers = {}, texts = {}, ids = {}, fresh = {}, struck = {}, replies = {}, told = {}, ntold = 0, lots = {}, lotAt = {}, lotIx = {}, keptLots = false, changed = {}, nchanged = 0, logs = 0}\n nothingChanged(known)\n")
	made := []string{"slabOf('N', 3, {})"}
	for _, s := range l.Slabs[1:] {
		most = max(most, tr.largest(tr.slabs[s.Name]))
		constant := ""
		if s.Name == "limits" {
			constant = ", true"
		}
		made = append(made, fmt.Sprintf("slabOf(%q, %d, %s%s)", s.Key, s.Slots, luaList(largeOf(tr.slabs[s.Name])), constant))
	}
	for _, n := range singles {
		made = append(made, fmt.Sprintf("slabOf('%s', %d, %s)", n, slots(tr.single[n]), luaList(largeOf(tr.single[n]))))
	}
	made = append(made, fmt.Sprintf("slabOf('cfg', %d, {}, true)", tr.cfg.size), "slabOf('tree', 1, {})")
	b.WriteString(" known.slabs = { -- in the order of useSlabs\n")
	for some := range slices.Chunk(made, 4) {
		fmt.Fprintf(&b, "  %s,\n", strings.Join(some, ", "))
	}
	b.WriteString(" }\n useSlabs(known.slabs)\n S_insts.kept = true\n cfg = ld(S_cfg, '')\n")
	tr.widths(&b)
	b.WriteString("end\n")
	fmt.Fprintf(&b, "local largest = %d\n", most)
	tr.opening(&b, singles)
	b.WriteString("local X = {")
	for i, n := range []string{"ticketIx", "instIx", "sessIx", "flowIx", "membIx", "laneIx", "domIx", "spotIx"} {
		fmt.Fprintf(&b, "%s = 'i%c', ", n, 'a'+i)
	}
	b.WriteString("}\n")
	tr.spelling(&b)
	verdicts(&b)
	b.WriteString(`F.flat_Tree_priority = function()
 tree[1] = (tree[1] + 1) % 1048576
 return tree[1] * 2654435761 % 4294967296
end
`)
	return b.String()
}

// opening writes the functions that load the records a pool has one of, and that switch to another pool.
func (tr *translator) opening(b *strings.Builder, singles []string) {
	single, _ := tr.fieldAt("internal/pool.once", "single")
	ring, _ := tr.fieldAt("internal/pool.inst", "ring")
	fmt.Fprintf(b, `local alone = {__index = function(t, i)
 local at = once[%d + i]
 local u = {at}
 if at ~= 0 then
  u[2] = S_insts[at] or ld(S_insts, at)
  local ring = u[2][%d]
  if ring ~= 0 then u[3] = S_rings[ring] or ld(S_rings, ring) end
 end
 rawset(t, i, u)
 return u
end}
local function again()
 unscoped = setmetatable({}, alone)
 tree = S_tree[''] or ld(S_tree, '')
%send
local function takeUp(k)
 setAside()
 known = k
 T[%d], T[%d], T[%d] = k.tallies, k.tell, k.before
 useSlabs(k.slabs)
 cfg = S_cfg['']
 again()
end
`, single+1, ring+1, lookups(singles), transients["pool.crew.tallies"]+1, transients["pool.crew.told"]+1, transients["pool.crew.before"]+1)
}

// lookups returns the assignments that load the records a pool has one of.
func lookups(singles []string) string {
	var b strings.Builder
	for _, n := range singles {
		fmt.Fprintf(&b, " %s = S_%s[''] or ld(S_%s, '')\n", n, n, n)
	}
	return b.String()
}

// spelling writes the functions that turn lots and ends into single operations, for the case that the fast path cannot
// carry them out, and the constants that main.lua needs for lots, ends and tallies.
func (tr *translator) spelling(b *strings.Builder) {
	t := tr.prog.lookup("store.Op").Type()
	vals := make([]string, slots(t))
	tr.zeros(t, vals)
	for i, v := range vals {
		if v == "false" {
			vals[i] = "{}" // a slice
		}
	}
	id, _ := tr.fieldAt("store.Op", "ID")
	vals[0], vals[id], vals[id+1] = "kind", "session", "N"
	fmt.Fprintf(b, "local function blank(kind, session, N) return {%s} end\n", strings.Join(vals, ","))
	at := func(typ, field string) int {
		k, _ := tr.fieldAt(typ, field)
		return k + 1
	}
	const op, lot, ends, tally = "store.Op", "internal/pool.Lot", "internal/pool.Ends", "internal/pool.tally"
	b.WriteString("local function spelt(l, k)\n")
	fmt.Fprintf(b, " local op, w = blank(%s, l[%d], 0), l[%d]\n", tr.constant("store.OpAcquire"), at(lot, "ID"), at(lot, "Width"))
	var to, from []string
	for _, f := range []string{"User", "Model", "Tool", "Key", "Class", "Tie", "Retry"} {
		to, from = append(to, fmt.Sprintf("op[%d]", at(op, f))), append(from, fmt.Sprintf("l[%d]", at(lot, f)))
	}
	fmt.Fprintf(b, " %s = %s\n", strings.Join(to, ", "), strings.Join(from, ", "))
	fmt.Fprintf(b, " op[%d], op[%d] = l[%d] * 1000, l[%d] * 1000\n", at(op, "Alive"), at(op, "TTL"), at(lot, "Alive"), at(lot, "TTL"))
	fmt.Fprintf(b, " local waits = l[%d]\n op[%d], op[%d] = l[%d][k], (waits[k] or waits[1]) * 1000\n",
		at(lot, "Waits"), at(op, "Agent"), at(op, "Wait"), at(lot, "Agents"))
	// Amounts are of limits by their numbers, as the store sends them.
	fmt.Fprintf(b, " for i = 1, w do\n  local n = l[%d][(k - 1) * w + i]\n  if n ~= 0 then table.insert(op[%d], {'', i - 1, n}) end\n end\n return op\nend\n", at(lot, "Amounts"), at(op, "Amounts"))
	b.WriteString("local function speltAnswer(e, k)\n")
	fmt.Fprintf(b, " local op = blank(%s, e[%d], e[%d][k])\n op[%d] = %s\n return op\nend\n",
		tr.constant("store.OpAnswer"), at(ends, "Session"), at(ends, "Numbers"), at(op, "Verdict"), tr.constant("store.VerdictOK"))
	b.WriteString("local function speltClose(e, k)\n")
	fmt.Fprintf(b, " local op, w = blank(%s, e[%d], e[%d][k]), e[%d]\n for i = 1, w do\n  local n = e[%d][(k - 1) * w + i]\n  if n >= 0 then table.insert(op[%d], {'', i - 1, n}) end\n end\n return op\nend\n",
		tr.constant("store.OpClose"), at(ends, "Session"), at(ends, "Numbers"), at(ends, "Width"), at(ends, "Amounts"), at(op, "Amounts"))
	fmt.Fprintf(b, "local lotSession, lotAgents, lotStates, lotCallers = %d, %d, %d, %d\n", at(lot, "ID"), at(lot, "Agents"), at(lot, "states"), at(lot, "callers"))
	fmt.Fprintf(b, "local endSession, endAnswer, endClose, endNumbers = %d, %d, %d, %d\n",
		at(ends, "Session"), at(ends, "Answer"), at(ends, "Close"), at(ends, "Numbers"))
	fmt.Fprintf(b, "local lotSlots, lotEnded, lotKind, touchKind = %d, %s, %s, %s\n",
		slots(tr.prog.lookup(lot).Type()), tr.constant("internal/pool.ended"), tr.constant("internal/pool.LotKind"), tr.constant("store.OpTouch"))
	none := make([]string, slots(tr.prog.lookup(tally).Type()))
	tr.zeros(tr.prog.lookup(tally).Type(), none)
	none[at(tally, "caller")-1] = "caller"
	fmt.Fprintf(b, "local function newTally(caller) return {%s} end\n", strings.Join(none, ","))
	fmt.Fprintf(b, "local tallies, told, before = %d, %d, %d\n", transients["pool.crew.tallies"]+1, transients["pool.crew.told"]+1, transients["pool.crew.before"]+1)
	fmt.Fprintf(b, "local tallySlots, tallyDirty, tallyListed, tallyMarked = %d, %d, %d, %d\n", len(none), at(tally, "dirty"), at(tally, "listed"), at(tally, "marked"))
}

// verdicts writes the names of verdicts.
func verdicts(b *strings.Builder) {
	b.WriteString("local verdicts = {")
	for v := store.Verdict(0); v.String() != "invalid"; v++ {
		fmt.Fprintf(b, "[%d] = %q, ", v, v.String())
	}
	b.WriteString("}\nF.store_Verdict_String = function(v) return verdicts[v] or 'invalid' end\n")
}

// constant returns the value of a constant of the module.
func (tr *translator) constant(name string) string {
	return tr.prog.lookup(name).(*types.Const).Val().ExactString()
}

// widths writes how many slots of tickets and lanes a pool uses, which depends on its limits and classes.
func (tr *translator) widths(b *strings.Builder) {
	charges, t := tr.fieldAt("internal/pool.ticket", "charges")
	fmt.Fprintf(b, " S_tickets.n = %d + %d * cfg[%d]\n", charges, slots(t.Underlying().(*types.Array).Elem()), tr.cfg.at("store.Spec.Limits.len", 1)+1)
	parts, t := tr.fieldAt("internal/order.lane", "parts")
	fmt.Fprintf(b, " S_qlanes.n = %d + %d * cfg[%d]\n", parts, slots(t.Underlying().(*types.Array).Elem()), tr.cfg.at("widest", 1)+1)
}

// largest returns the index of the last page of the largest large array in a record.
func (tr *translator) largest(t types.Type) (pages int) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return 0
	}
	for i := range s.NumFields() {
		f := s.Field(i).Type()
		if isLarge(f) {
			pages = max(pages, (slots(f)-1)/16)
		} else {
			pages = max(pages, tr.largest(f))
		}
	}
	return pages
}

func luaList(names []string) string {
	if len(names) == 0 {
		return "{}"
	}
	return "{'" + strings.Join(names, "', '") + "'}"
}

// fieldAt returns the offset and type of a field of the struct type typ.
func (tr *translator) fieldAt(typ, field string) (int, types.Type) {
	s := tr.prog.lookup(typ).Type().Underlying().(*types.Struct)
	for i := range s.NumFields() {
		if s.Field(i).Name() == field {
			return offset(s, i), s.Field(i).Type()
		}
	}
	panic(fmt.Errorf("%s has no %s", typ, field))
}
