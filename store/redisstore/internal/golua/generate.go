package golua

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// Output is a translated pool.
type Output struct {
	Lua    string
	Layout Layout
}

// Layout is how a pool's state is laid out for the script.
type Layout struct {
	Slabs   []Slab
	Singles map[string]int // slots of the records of which there is one
	Config  []CfgField
	Op      int // slots of an operation
}

// Slab is how the records of a slab are kept.
type Slab struct {
	Name  string
	Key   string // its fields begin with
	Slots int    // of a record, without the link of a free one
	Head  int    // where its head is among the heads
}

// Generate translates the pool of the module in root.
func Generate(root string) (out Output, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok {
				panic(r)
			}
			err = e
		}
	}()
	prog, err := load(root, "store", "internal/flat", "internal/meter", "internal/order", "internal/gate", "internal/policy", "internal/pool")
	if err != nil {
		return out, err
	}
	tr := &translator{prog: prog, seen: map[*types.Func]bool{}, slabs: map[string]int{}, single: map[string]int{}}
	tr.findInner()
	tr.slab("defs", prog.lookup("internal/meter.Def").Type())
	tr.slab("limits", prog.lookup("store.Limit").Type())
	pool := prog.lookup("internal/pool.Pool")
	apply, _, _ := types.LookupFieldOrMethod(types.NewPointer(pool.Type()), true, pool.Pkg(), "Apply")
	tr.translate(apply.(*types.Func))
	out.Layout = tr.layout()
	out.Lua = tr.declarations(out.Layout) + tr.out.String()
	return out, nil
}

// layout gives every slab its key and its head. The names come first: the runtime knows them.
func (tr *translator) layout() Layout {
	l := Layout{Singles: tr.single, Config: tr.cfg.fields, Op: slots(tr.prog.lookup("store.Op").Type())}
	l.Slabs = append(l.Slabs, Slab{Name: "names", Key: "N", Slots: 3})
	for i, n := range slices.Sorted(maps.Keys(tr.slabs)) {
		l.Slabs = append(l.Slabs, Slab{Name: n, Key: string(rune('A'+i%13)) + strings.Repeat("'", i/13), Slots: tr.slabs[n], Head: 3 * (i + 1)})
	}
	return l
}

// declarations is what the translated functions find by name.
func (tr *translator) declarations(l Layout) string {
	var b strings.Builder
	fmt.Fprintf(&b, "local cfgSlots, headSlots = %d, %d\n", tr.cfg.size, 3*len(l.Slabs)+1)
	result, _ := tr.fieldAt("store.Op", "Result")
	fmt.Fprintf(&b, "local resultAt, resultSlots = %d, %d\n", result, slots(tr.prog.lookup("store.Result").Type()))
	for _, s := range l.Slabs[1:] {
		constant := ""
		if s.Name == "limits" {
			constant = ", c = true"
		}
		fmt.Fprintf(&b, "local S_%s = {k = %q, n = %d, h = %d%s}\n", s.Name, s.Key, s.Slots, s.Head, constant)
	}
	names := slices.Sorted(maps.Keys(tr.single))
	fmt.Fprintf(&b, "local cfg, %s\n", strings.Join(names, ", "))
	b.WriteString("local function open()\n heads = record('heads', headSlots)\n cfg = record('cfg', cfgSlots, true)\n")
	for _, n := range names {
		fmt.Fprintf(&b, " %s = record('%s', %d)\n", n, n, tr.single[n])
	}
	b.WriteString("end\nlocal X = {")
	for i, n := range []string{"ticketIx", "instIx", "sessIx", "flowIx", "membIx", "laneIx", "domIx", "spotIx"} {
		fmt.Fprintf(&b, "%s = 'i%c', ", n, 'a'+i)
	}
	b.WriteString("}\n")
	b.WriteString(`F.flat_Tree_priority = function()
 heads[headSlots] = (heads[headSlots] + 1) % 1048576
 return heads[headSlots] * 2654435761 % 4294967296
end
`)
	single, _ := tr.fieldAt("internal/pool.once", "single")
	ring, _ := tr.fieldAt("internal/pool.inst", "ring")
	fmt.Fprintf(&b, `local unscoped = setmetatable({}, {__index = function(t, i)
 local at = once[%d + i]
 local u = {at}
 if at ~= 0 then
  u[2] = S_insts[at] or ld(S_insts, at)
  local ring = u[2][%d]
  if ring ~= 0 then u[3] = S_rings[ring] or ld(S_rings, ring) end
 end
 rawset(t, i, u)
 return u
end})
`, single+1, ring+1)
	return b.String()
}

// fieldAt returns where a field of a type begins.
func (tr *translator) fieldAt(typ, field string) (int, types.Type) {
	s := tr.prog.lookup(typ).Type().Underlying().(*types.Struct)
	for i := range s.NumFields() {
		if s.Field(i).Name() == field {
			return offset(s, i), s.Field(i).Type()
		}
	}
	panic(fmt.Errorf("%s has no %s", typ, field))
}
