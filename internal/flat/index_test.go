package flat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func seekAll(x *Index, h uint32) []int32 {
	var recs []int32
	for i, p := x.Seek(h, 0); i != 0; i, p = x.Seek(h, p) {
		recs = append(recs, i)
	}
	slices.Sort(recs)
	return recs
}

// hashes collide in full, in their home slot only, and around the end of the table.
var hashes = []uint32{0, 1, 2, 3, 14, 15, 16, 17, 31, 32, 1 << 20, 1<<20 + 15, ^uint32(0), ^uint32(0) - 1, ^uint32(0) - 15}

func TestIndexFindsExactlyWhatWasEnteredUnderCollisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		model := map[slot]bool{}
		var order []slot
		next := int32(1)
		hash := rapid.OneOf(rapid.SampledFrom(hashes), rapid.Uint32())
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s := slot{hash.Draw(t, "hash"), next}
				next++
				x.Add(s.hash, s.rec)
				model[s] = true
				order = append(order, s)
			},
			"add a record under a second hash": func(t *rapid.T) {
				if len(order) == 0 {
					return
				}
				s := slot{hash.Draw(t, "hash"), rapid.SampledFrom(order).Draw(t, "record").rec}
				if model[s] {
					return
				}
				x.Add(s.hash, s.rec)
				model[s] = true
				order = append(order, s)
			},
			"remove": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 3).Draw(t, "count"), len(order)) {
					k := rapid.IntRange(0, len(order)-1).Draw(t, "which")
					x.Remove(order[k].hash, order[k].rec)
					delete(model, order[k])
					order = slices.Delete(order, k, k+1)
				}
			},
			"remove what is not there": func(t *rapid.T) {
				s := slot{hash.Draw(t, "hash"), rapid.Int32Range(1, next).Draw(t, "record")}
				if !model[s] {
					x.Remove(s.hash, s.rec)
				}
			},
			"": func(t *rapid.T) {
				if x.Len() != len(model) {
					t.Fatalf("Len is %d, %d were entered", x.Len(), len(model))
				}
				want := map[uint32][]int32{}
				for _, h := range hashes {
					want[h] = nil
				}
				for s := range model {
					want[s.hash] = append(want[s.hash], s.rec)
				}
				for h, recs := range want {
					slices.Sort(recs)
					if got := seekAll(&x, h); !slices.Equal(got, recs) {
						t.Fatalf("under hash %#x: found %v, entered %v", h, got, recs)
					}
				}
			},
		})
	})
}

func TestIndexOfEqualHashesLosesNoneWhenEmptiedInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 60
		recs := make([]int32, n)
		var x Index
		for i := range recs {
			recs[i] = int32(i + 1)
			x.Add(7, recs[i])
		}
		left := slices.Clone(recs)
		for _, rec := range rapid.Permutation(recs).Draw(t, "order") {
			x.Remove(7, rec)
			left = slices.DeleteFunc(left, func(r int32) bool { return r == rec })
			if got := seekAll(&x, 7); !slices.Equal(got, left) {
				t.Fatalf("after removing %d: found %v, want %v", rec, got, left)
			}
		}
		for i, s := range x.slots {
			if s != (slot{}) {
				t.Fatalf("slot %d of an empty index holds %+v", i, s)
			}
		}
	})
}

func TestIndexDoesNotGrowWhileItsLoadIsSteady(t *testing.T) {
	var x Index
	for i := int32(1); i <= 10; i++ {
		x.Add(uint32(i), i)
	}
	size := len(x.slots)
	for i := int32(11); i <= 10_000; i++ {
		x.Remove(uint32(i-10), i-10)
		x.Add(uint32(i), i)
	}
	if len(x.slots) != size {
		t.Errorf("%d slots for 10 records, %d at first", len(x.slots), size)
	}
}

func TestZeroIndexFindsAndRemovesNothing(t *testing.T) {
	var x Index
	if i, _ := x.Seek(3, 0); i != 0 {
		t.Errorf("found %d", i)
	}
	x.Remove(3, 1)
	if x.Len() != 0 {
		t.Errorf("Len is %d", x.Len())
	}
}
