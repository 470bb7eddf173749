package golua

import (
	"go/types"
	"strings"
)

// singles are the types that a pool has one value of. It needs no pointer: functions use global names.
var singles = map[string]bool{
	"pool.Pool": true, "order.Queue": true, "flat.Names": true, "flat.Tree": true, "pool.callers": true, "pool.history": true,
	"store.Spec": true, "pool.crew": true,
}

// singleRecords are the records that a pool has one of, by their type.
var singleRecords = map[string]string{"pool.once": "once", "order.counts": "counts", "pool.sum": "sum", "pool.past": "past"}

// pseudo are the arrays of the configuration that are stored as records.
var pseudo = map[string]string{"pool.Pool.defs": "defs", "store.Spec.Limits": "limits"}

// transients are fields that are not stored in the hash. They are elements of the Lua table T.
var transients = map[string]int{
	"pool.Pool.batch": 0, "pool.Pool.decided": 1, "order.Queue.heads": 2, "order.Queue.held": 3, "order.Queue.unparked": 4, "pool.Pool.sums": 5,
	"pool.crew.tallies": 6, "pool.crew.told": 7, "pool.crew.before": 8,
}

// slabPrefix distinguishes slabs of the same name.
var slabPrefix = map[string]string{"order.Queue": "q", "pool.callers": "c", "pool.history": "h", "flat.Tree": "t"}

// typeName returns "package.Name" of a named type, or of the type that a pointer points to.
func typeName(t types.Type) string {
	if e := pointee(t); e != nil {
		t = e
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return n.Obj().Pkg().Name() + "." + n.Obj().Name()
}

func (tr *translator) isSingle(t types.Type) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && singles[n.Obj().Pkg().Name()+"."+n.Obj().Name()]
}

func isSlab(t types.Type) bool { return typeName(t) == "flat.Slab" }

func slabElem(t types.Type) types.Type {
	return types.Unalias(t).(*types.Named).TypeArgs().At(0)
}

// cfgLayout is the layout of the record with the derived configuration of a pool.
type cfgLayout struct {
	fields []CfgField
	size   int
}

// CfgField is a field of that record.
type CfgField struct {
	Name   string // such as pool.Pool.shared
	Offset int
	Slots  int
}

func (c *cfgLayout) at(name string, n int) int {
	for _, f := range c.fields {
		if f.Name == name {
			return f.Offset
		}
	}
	c.fields = append(c.fields, CfgField{name, c.size, n})
	c.size += n
	return c.size - n
}

// singleField returns where a field of a single is stored. single reports that the field is itself a single.
func (tr *translator) singleField(owner types.Type, f *types.Var) (p place, single bool) {
	full := typeName(owner) + "." + f.Name()
	switch t := f.Type(); {
	case tr.isSingle(t) || pointee(t) != nil && tr.isSingle(pointee(t)):
		return place{}, true
	case singleRecords[typeName(t)] != "":
		rec := singleRecords[typeName(t)]
		tr.single[rec] = pointee(t)
		return place{t: rec}, false
	case isSlab(t):
		return place{t: tr.slab(slabPrefix[typeName(owner)]+f.Name(), slabElem(t))}, false
	case typeName(t) == "flat.Index":
		return place{t: "X." + f.Name()}, false
	case full == "pool.Pool.unscoped":
		return place{t: "unscoped"}, false
	case pseudo[full] != "":
		return place{t: pseudo[full]}, false
	}
	if k, ok := transients[full]; ok {
		return place{t: "T", c: k}, false
	}
	if strings.HasPrefix(full, "flat.") {
		return place{t: "X." + f.Name()}, false
	}
	return place{t: "cfg", c: tr.cfg.at(full, slots(f.Type()))}, false
}

func (tr *translator) slab(name string, elem types.Type) string {
	tr.slabs[name] = elem
	return "S_" + name
}
