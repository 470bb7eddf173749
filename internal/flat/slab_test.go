package flat

import (
	"testing"

	"pgregory.net/rapid"
)

type record struct {
	a int64
	b [3]int32
}

func TestSlabRecordsStayWhereTheyAreAndAreZeroedWhenReused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type held struct {
			at    *record
			value record
		}
		var s Slab[record]
		live := map[int32]held{}
		var order []int32
		var stamp int64
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) {
				for range rapid.IntRange(1, 700).Draw(t, "count") {
					i := s.New()
					if i <= 0 {
						t.Fatalf("record number %d handed out", i)
					}
					if _, ok := live[i]; ok {
						t.Fatalf("record %d handed out twice", i)
					}
					at := s.At(i)
					if *at != (record{}) {
						t.Fatalf("record %d is not zero: %+v", i, *at)
					}
					stamp++
					*at = record{stamp, [3]int32{i, -i, 7}}
					live[i] = held{at, *at}
					order = append(order, i)
				}
			},
			"free": func(t *rapid.T) {
				for range min(rapid.IntRange(1, 500).Draw(t, "count"), len(order)) {
					k := rapid.IntRange(0, len(order)-1).Draw(t, "which")
					i := order[k]
					order[k] = order[len(order)-1]
					order = order[:len(order)-1]
					s.Free(i)
					if *s.At(i) != (record{}) {
						t.Fatalf("record %d is not zero after Free", i)
					}
					delete(live, i)
				}
			},
			"": func(t *rapid.T) {
				if s.Len() != len(live) {
					t.Fatalf("Len is %d, %d records are in use", s.Len(), len(live))
				}
				for i, h := range live {
					if s.At(i) != h.at {
						t.Fatalf("record %d has moved", i)
					}
					if *h.at != h.value {
						t.Fatalf("record %d changed to %+v, was %+v", i, *h.at, h.value)
					}
					if i >= s.End() {
						t.Fatalf("record %d is not below End, %d", i, s.End())
					}
				}
			},
		})
	})
}

func TestSlabReusesFreedRecordsBeforeItGrows(t *testing.T) {
	var s Slab[record]
	var all []int32
	for range 5000 {
		all = append(all, s.New())
	}
	end := s.End()
	for _, i := range all {
		s.Free(i)
	}
	if s.Len() != 0 {
		t.Fatalf("Len is %d after everything was freed", s.Len())
	}
	for range all {
		s.New()
	}
	if s.End() != end {
		t.Errorf("the slab grew from %d to %d although all was free", end, s.End())
	}
}

func TestSlabOfLargeRecordsOverSeveralChunks(t *testing.T) {
	const last = 5000
	var s Slab[[last + 1]byte]
	for n := range 3 * chunkLen {
		s.At(s.New())[last] = byte(n + 1)
	}
	for i := int32(1); i < s.End(); i++ {
		if got := s.At(i)[last]; got != byte(i) {
			t.Errorf("record %d holds %d", i, got)
		}
	}
}

func TestRecycledRecordIsHandedOutAgain(t *testing.T) {
	var s Slab[record]
	i := s.New()
	s.Recycle(i)
	if s.Len() != 0 {
		t.Errorf("Len is %d after Recycle", s.Len())
	}
	if j := s.New(); j != i {
		t.Errorf("New returned %d, not the recycled %d", j, i)
	}
}

func TestZeroSlabIsEmpty(t *testing.T) {
	var s Slab[record]
	if s.Len() != 0 || s.End() != 0 {
		t.Errorf("Len %d, End %d", s.Len(), s.End())
	}
}
