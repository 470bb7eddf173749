package oplog

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/sluicehq/sluice/store"
)

// filler sets fields by reflection, so that a field somebody adds is among them.
type filler struct {
	t    *testing.T
	only int // the one to set; negative: all
	n    int // so many were met
	path string
}

// fill gives every field below v a value of its own. Slices get two elements each.
func (f *filler) fill(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[store.Op]() && v.Type().Field(i).Name == "Result" {
				continue
			}
			f.fill(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
		return
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
		return
	}
	f.n++
	if f.only >= 0 && f.only != f.n-1 {
		return
	}
	f.path = path
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", f.n))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int, reflect.Int64:
		x := int64(1)<<(v.Type().Bits()-2) + int64(f.n)
		if f.n%2 == 0 {
			x = -x
		}
		v.SetInt(x)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint, reflect.Uint64:
		x := uint64(f.n)
		if v.Type().Bits() > 8 {
			x += 1 << (v.Type().Bits() - 1)
		}
		v.SetUint(x)
	default:
		f.t.Fatalf("%s is a %s: neither this test nor the package knows how to carry it", path, v.Kind())
	}
	if v.IsZero() {
		f.t.Fatalf("%s: no value left for it", path)
	}
}

// each calls check for a T with all fields set, and for one with each field alone.
func each[T any](t *testing.T, check func(what string, v *T)) {
	all := filler{t: t, only: -1}
	var v T
	all.fill(reflect.ValueOf(&v).Elem(), "")
	check("all", &v)
	for i := range all.n {
		one := filler{t: t, only: i}
		var v T
		one.fill(reflect.ValueOf(&v).Elem(), "")
		check(one.path, &v)
	}
}

func TestEveryFieldOfAnOpIsKept(t *testing.T) {
	t.Parallel()
	var e Entry
	each(t, func(what string, op *store.Op) {
		ops := []store.Op{*op}
		b := AppendApply(nil, -5, ops)
		if len(b) > Bound(ops) {
			t.Errorf("%s: %d bytes, bound %d", what, len(b), Bound(ops))
		}
		if n, err := e.Next(b); err != nil || n != len(b) {
			t.Fatalf("%s: %d of %d bytes, %v", what, n, len(b), err)
		}
		if e.Kind != KindApply || e.Now != -5 || !reflect.DeepEqual(e.Ops, ops) {
			t.Errorf("%s: got kind %d at %d\n%+v, want\n%+v", what, e.Kind, e.Now, e.Ops, ops)
		}
	})
}

func TestEveryFieldOfASpecIsKept(t *testing.T) {
	t.Parallel()
	var e Entry
	each(t, func(what string, spec *store.Spec) {
		spec.OnFailure, spec.OneShot = 0, false // a member's own, and nothing of the pool's
		for _, alone := range []bool{false, true} {
			b := AppendDefine(nil, 7, spec, alone)
			if len(b) > BoundSpec(spec) {
				t.Errorf("%s: %d bytes, bound %d", what, len(b), BoundSpec(spec))
			}
			if n, err := e.Next(b); err != nil || n != len(b) {
				t.Fatalf("%s: %d of %d bytes, %v", what, n, len(b), err)
			}
			if e.Kind != KindDefine || e.Now != 7 || e.Alone != alone || !reflect.DeepEqual(&e.Spec, spec) {
				t.Errorf("%s: got kind %d at %d, alone %v\n%+v, want\n%+v", what, e.Kind, e.Now, e.Alone, e.Spec, *spec)
			}
		}
		if got, err := DecodeSpec(AppendSpec(nil, spec)); err != nil || !reflect.DeepEqual(&got, spec) {
			t.Errorf("%s: got %v\n%+v, want\n%+v", what, err, got, *spec)
		}
	})
}
