package flat

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// text draws names that share long beginnings, end at the edges of a record, and
// hold any byte.
func text(t *rapid.T) string {
	switch rapid.IntRange(0, 3).Draw(t, "shape") {
	case 0:
		return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
	case 1:
		n := rapid.SampledFrom([]int{0, 1, 49, 50, 51, 99, 100, 101, 149, 150, 151, 250, 299, 300}).Draw(t, "length")
		return strings.Repeat("a", n)
	case 2:
		n := rapid.IntRange(0, 299).Draw(t, "length")
		return strings.Repeat("a", n) + rapid.SampledFrom([]string{"b", "\x00", "c"}).Draw(t, "end")
	default:
		return rapid.SampledFrom([]string{"", "p0", "p1", "claude", "claude\x00"}).Draw(t, "word")
	}
}

func TestNamesAreEqualExactlyWhenTheirNumbersAreAndVanishWithTheLastReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n Names
		refs := map[string]int{}
		number := map[string]int32{}
		var held []string
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				s := text(t)
				i := n.Hold(s)
				if (i == 0) != (s == "") {
					t.Fatalf("%q got number %d", s, i)
				}
				if refs[s] > 0 && number[s] != i {
					t.Fatalf("%q is number %d and then %d", s, number[s], i)
				}
				refs[s]++
				number[s] = i
				held = append(held, s)
			},
			"keep": func(t *rapid.T) {
				if len(held) == 0 {
					return
				}
				s := rapid.SampledFrom(held).Draw(t, "name")
				if got := n.Keep(number[s]); got != number[s] {
					t.Fatalf("Keep(%d) = %d", number[s], got)
				}
				refs[s]++
				held = append(held, s)
			},
			"drop": func(t *rapid.T) {
				if len(held) == 0 {
					return
				}
				k := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				s := held[k]
				held[k] = held[len(held)-1]
				held = held[:len(held)-1]
				n.Drop(number[s])
				if refs[s]--; refs[s] == 0 {
					delete(refs, s)
					delete(number, s)
				}
			},
			"": func(t *rapid.T) {
				seen := map[int32]string{}
				want := 0
				for s, i := range number {
					if s != "" {
						want++
					}
					if other, ok := seen[i]; ok {
						t.Fatalf("%q and %q are both number %d", s, other, i)
					}
					seen[i] = s
					if got := n.Text(i); got != s {
						t.Fatalf("Text of %q is %q", s, got)
					}
					if got := n.Find(s); got != i {
						t.Fatalf("Find(%q) = %d, want %d", s, got, i)
					}
				}
				if n.Len() != want {
					t.Fatalf("Len is %d, %d names are held", n.Len(), want)
				}
				if s := text(t); refs[s] == 0 && n.Find(s) != 0 {
					t.Fatalf("%q is found and nobody holds it", s)
				}
			},
		})
		for _, s := range held {
			n.Drop(number[s])
		}
		if n.Len() != 0 || n.recs.Len() != 0 {
			t.Fatalf("%d names and %d records are left after the last drop", n.Len(), n.recs.Len())
		}
	})
}

func TestNamesWithEqualHashesAreToldApart(t *testing.T) {
	var n Names
	a, b := n.store("one"), n.store("two")
	h := uint32(Hash("two"))
	for _, i := range []int32{a, b} {
		n.recs.At(i).hash, n.recs.At(i).refs = h, 1
		n.index.Add(h, i)
	}
	if got := n.Find("two"); got != b {
		t.Errorf("Find returned %d, %q", got, n.Text(got))
	}
	n.Drop(a)
	if got := n.Find("two"); got != b {
		t.Errorf("after its neighbour was dropped, Find returned %d", got)
	}
}

func TestHashSpreadsSimilarNames(t *testing.T) {
	const n = 1 << 12
	for name, of := range map[string]func(int) uint64{
		"numbered": func(i int) uint64 {
			return Hash("agent-" + strings.Repeat("x", i%9) + string(rune('0'+i%10)) + string(rune(0x100+i)))
		},
		"lengths": func(i int) uint64 { return Hash(strings.Repeat("\x00", i)) },
		"numbers": func(i int) uint64 { return Mix(uint64(i)) },
	} {
		full, low := map[uint64]int{}, map[uint64]int{}
		deepest := 0
		for i := range n {
			h := of(i)
			full[h]++
			low[h%n]++
			deepest = max(deepest, low[h%n])
		}
		if len(full) < n-1 {
			t.Errorf("%s: %d hashes for %d names", name, len(full), n)
		}
		if deepest > 12 {
			t.Errorf("%s: %d of %d names share a slot", name, deepest, n)
		}
	}
}
