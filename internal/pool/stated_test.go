package pool

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
)

// stating returns a spec that states the sizes of two limits.
func stating(member string, sizes ...int64) store.Spec {
	s := spec()
	s.Member = member
	for i, n := range sizes {
		s.Limits = append(s.Limits, store.Limit{Name: string(rune('a' + i)), Unit: "requests", Kind: store.Rolling, Window: time.Minute, Size: n, Guard: store.GuardOff})
	}
	return s
}

func TestDueIsTheSmallestSizeThatIsStated(t *testing.T) {
	t.Parallel()
	other := stating("other nature", 1, 1)
	for i := range other.Limits {
		other.Limits[i].Window = time.Hour
	}
	for name, c := range map[string]struct {
		living []store.Spec
		sizes  []int64
		by     []string
	}{
		"nobody":            {nil, []int64{10, 10}, []string{"x", "x"}},
		"one":               {[]store.Spec{stating("y", 20, 30)}, []int64{20, 30}, []string{"y", "y"}},
		"each its own":      {[]store.Spec{stating("y", 20, 30), stating("z", 25, 5)}, []int64{20, 5}, []string{"y", "z"}},
		"no known size":     {[]store.Spec{stating("y", 0, 0), stating("z", 0, 7)}, []int64{0, 7}, []string{"y", "z"}},
		"the same":          {[]store.Spec{stating("y", 10, 7)}, []int64{10, 7}, []string{"x", "y"}},
		"another nature":    {[]store.Spec{stating("y", 20, 30), other}, []int64{20, 30}, []string{"y", "y"}},
		"one limit of them": {[]store.Spec{stating("y", 20, 30), stating("z", 2)}, []int64{2, 30}, []string{"z", "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := New(stating("x", 10, 10), 1)
			if err == nil {
				err = p.Settle(c.living)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.sizes {
				if l, by := p.spec.Limits[i], p.names.Text(p.by[i]); l.Size != c.sizes[i] || by != c.by[i] {
					t.Errorf("limit %d has the size %d of %q, want %d of %q", i, l.Size, by, c.sizes[i], c.by[i])
				}
			}
			if _, due := p.Due(c.living); due {
				t.Error("something is still due")
			}
		})
	}
}

// A limit ends up with the smallest size that is stated now, whatever was stated before. The pool names a member
// that states it.
func TestSettleForgetsWhatWasStated(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(0, 5)
		draw := func() (living []store.Spec) {
			for range rapid.IntRange(1, 3).Draw(t, "members") {
				living = append(living, stating(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"), size.Draw(t, "a"), size.Draw(t, "b")))
			}
			return living
		}
		p, err := New(stating("first", size.Draw(t, "a"), size.Draw(t, "b")), 1)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			living := draw()
			before := slices.Clone(p.spec.Limits)
			if err := p.Settle(living); err != nil {
				t.Fatal(err)
			}
			merged := Merged(living)
			for i, l := range p.spec.Limits {
				if l.Size != merged.Limits[i].Size {
					t.Fatalf("limit %d has the size %d, and %+v state %d", i, l.Size, living, merged.Limits[i].Size)
				}
				by := p.names.Text(p.by[i])
				states := func(s store.Spec) bool { return s.Member == by && s.Limits[i].Size == l.Size }
				if before[i].Size != l.Size && !slices.ContainsFunc(living, states) {
					t.Fatalf("limit %d of size %d is that of %q", i, l.Size, by)
				}
			}
		}
	})
}

// A session that restates replaces what the sessions before it stated. A read-only session states nothing.
func TestSaid(t *testing.T) {
	t.Parallel()
	var s Said
	first, second, looks := stating("x", 5), stating("x", 3), stating("x", 1)
	looks.ReadOnly = true
	s.Add(1, &first)
	s.Add(2, &second)
	s.Add(3, &looks)
	if all := s.Specs(); len(all) != 2 || Merged(all).Limits[0].Size != 3 {
		t.Errorf("it states %+v", all)
	}
	again := stating("x", 9)
	again.Restate = true
	if all := s.With(&again); len(all) != 1 || all[0].Limits[0].Size != 9 || len(s.Specs()) != 2 {
		t.Errorf("it would state %+v", all)
	}
	s.Add(4, &again)
	if s.Drop(1) || s.Drop(3) || len(s.Specs()) != 1 {
		t.Errorf("it states %+v after those before it have gone", s.Specs())
	}
	if !s.Drop(4) || len(s.Specs()) != 0 {
		t.Errorf("it states %+v at the end", s.Specs())
	}
}
