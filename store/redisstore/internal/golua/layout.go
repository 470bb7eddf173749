package golua

import (
	"fmt"
	"go/types"
)

// slots returns how many elements of an array a value of a type takes.
func slots(t types.Type) int {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		n := 0
		for i := range u.NumFields() {
			n += fieldSlots(u.Field(i))
		}
		return n
	case *types.Array:
		return int(u.Len()) * slots(u.Elem())
	default:
		return 1
	}
}

// fieldSlots is slots for a field. Blank fields take none, and large arrays are stored apart.
func fieldSlots(f *types.Var) int {
	if f.Name() == "_" || isLarge(f.Type()) {
		return 0
	}
	return slots(f.Type())
}

// isLarge reports whether a type is a large array, of which one step uses few elements. It becomes a table beside the
// slots of its record, and is loaded page by page.
func isLarge(t types.Type) bool {
	a, ok := t.Underlying().(*types.Array)
	return ok && a.Len() > 63
}

// largeOf lists the large arrays in a record.
func largeOf(t types.Type) (names []string) {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for i := range s.NumFields() {
		f := s.Field(i)
		if isLarge(f.Type()) {
			names = append(names, f.Name())
			continue
		}
		names = append(names, largeOf(f.Type())...)
	}
	return names
}

// offset returns the slot at which a field begins. Embedded structs come first, so that a pointer to the struct is also a
// pointer to them.
func offset(s *types.Struct, field int) int {
	at := 0
	for _, embedded := range []bool{true, false} {
		for i := range s.NumFields() {
			f := s.Field(i)
			if isEmbedded(f) != embedded {
				continue
			}
			if i == field {
				return at
			}
			at += fieldSlots(f)
		}
	}
	panic(fmt.Sprintf("no field %d in %v", field, s))
}

func isEmbedded(f *types.Var) bool {
	_, isStruct := f.Type().Underlying().(*types.Struct)
	return f.Embedded() && isStruct
}

// findInner finds the struct types that somewhere begin inside an array instead of at its start. Pointers to them need an
// offset.
func (tr *translator) findInner() {
	tr.inner = map[*types.TypeName]bool{}
	for again := true; again; {
		again = false
		mark := func(t types.Type) {
			if n, ok := types.Unalias(t).(*types.Named); ok && !tr.inner[n.Obj()] {
				tr.inner[n.Obj()] = true
				again = true
			}
		}
		for _, pkg := range tr.prog.pkgs {
			for _, name := range pkg.Scope().Names() {
				tn, ok := pkg.Scope().Lookup(name).(*types.TypeName)
				if !ok {
					continue
				}
				s, ok := tn.Type().Underlying().(*types.Struct)
				if !ok {
					continue
				}
				if tr.isSingle(tn.Type()) { // its parts are inside the configuration record
					for i := range s.NumFields() {
						if f := s.Field(i); composite(f.Type()) && !isSlab(f.Type()) && !tr.isSingle(f.Type()) {
							mark(f.Type())
						}
					}
					continue
				}
				if name != "Op" && !isFlat(s) { // not a record, and never translated
					continue
				}
				for i := range s.NumFields() {
					f := s.Field(i)
					switch u := f.Type().Underlying().(type) {
					case *types.Struct:
						if offset(s, i) != 0 || tr.inner[tn] {
							mark(f.Type())
						}
					case *types.Array:
						if _, isStruct := u.Elem().Underlying().(*types.Struct); isStruct {
							mark(u.Elem())
						}
					}
				}
			}
		}
	}
}

// isFlat reports whether a struct can be a record: it contains no slice, map or channel.
func isFlat(s *types.Struct) bool {
	for i := range s.NumFields() {
		switch u := s.Field(i).Type().Underlying().(type) {
		case *types.Slice, *types.Map, *types.Chan:
			return false
		case *types.Struct:
			if !isFlat(u) {
				return false
			}
		}
	}
	return true
}

// isFat reports whether a pointer to a type needs an offset beside its array.
func (tr *translator) isFat(elem types.Type) bool {
	if _, ok := elem.Underlying().(*types.Struct); !ok {
		return true
	}
	n, ok := types.Unalias(elem).(*types.Named)
	return !ok || tr.inner[n.Obj()]
}

// composite reports whether values of a type are laid out in an array of their own.
func composite(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Struct, *types.Array:
		return true
	}
	return false
}

// is reports whether t is a basic type with a property.
func is(t types.Type, property types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&property != 0
}

func isBool(t types.Type) bool     { return is(t, types.IsBoolean) }
func isString(t types.Type) bool   { return is(t, types.IsString) }
func isInteger(t types.Type) bool  { return is(t, types.IsInteger) }
func isUnsigned(t types.Type) bool { return is(t, types.IsUnsigned) }

// sizeOf returns how many bits an integer type has.
func sizeOf(t types.Type) int {
	switch b, _ := t.Underlying().(*types.Basic); b.Kind() {
	case types.Int8, types.Uint8:
		return 8
	case types.Int16, types.Uint16:
		return 16
	case types.Int32, types.Uint32:
		return 32
	}
	return 64
}

// is64 reports whether products of a type may exceed 2^53. Values of type int are counts, whose products do not.
func is64(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && (b.Kind() == types.Int64 || b.Kind() == types.Uint64)
}

func pointee(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return nil
}

// width returns how many Lua values stand for a Go value: 2 for a pointer with an offset, 0 for a single.
func (tr *translator) width(t types.Type) int {
	if tr.isSingle(t) {
		return 0
	}
	if e := pointee(t); e != nil {
		if tr.isSingle(e) {
			return 0
		}
		if tr.isFat(e) {
			return 2
		}
	}
	return 1
}
