package flat

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct {
	key   Key
	value int32
	node  int32
}

// walk returns a tree in order and fails where a link or a priority is wrong.
func walk(t interface{ Fatalf(string, ...any) }, tree *Tree, root int32) []item {
	if root != 0 && tree.nodes.At(root).parent != 0 {
		t.Fatalf("the root has a parent")
	}
	var all []item
	for i := tree.Min(root); i != 0; i = tree.Next(i) {
		n := tree.nodes.At(i)
		for _, child := range []int32{n.left, n.right} {
			if child == 0 {
				continue
			}
			c := tree.nodes.At(child)
			if c.parent != i {
				t.Fatalf("node %d is a child of %d and calls %d its parent", child, i, c.parent)
			}
			if c.priority > n.priority {
				t.Fatalf("node %d is below %d and has the higher priority", child, i)
			}
		}
		all = append(all, item{tree.KeyOf(i), tree.Value(i), i})
	}
	return all
}

func TestTreesOfOneForestStayInStableOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree Tree
		var roots [4]int32
		var model [4][]item // each in the order of insertion
		var value int32
		small := rapid.Int64Range(-3, 3)
		wide := rapid.OneOf(small, rapid.Int64())
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				k := rapid.IntRange(0, 3).Draw(t, "tree")
				for range rapid.IntRange(1, 20).Draw(t, "count") {
					value++
					it := item{key: Key{wide.Draw(t, "a"), small.Draw(t, "b")}, value: value}
					it.node = tree.Insert(&roots[k], it.key, it.value)
					model[k] = append(model[k], it)
				}
			},
			"delete": func(t *rapid.T) {
				k := rapid.IntRange(0, 3).Draw(t, "tree")
				for range min(rapid.IntRange(1, 15).Draw(t, "count"), len(model[k])) {
					i := rapid.IntRange(0, len(model[k])-1).Draw(t, "which")
					tree.Delete(&roots[k], model[k][i].node)
					model[k] = slices.Delete(model[k], i, i+1)
				}
			},
			"": func(t *rapid.T) {
				total := 0
				for k := range roots {
					want := slices.Clone(model[k])
					slices.SortStableFunc(want, func(x, y item) int {
						switch {
						case x.key.Less(y.key):
							return -1
						case y.key.Less(x.key):
							return 1
						}
						return 0
					})
					if got := walk(t, &tree, roots[k]); !slices.Equal(got, want) {
						t.Fatalf("tree %d holds %v, want %v", k, got, want)
					}
					total += len(want)
				}
				if tree.nodes.Len() != total {
					t.Fatalf("%d nodes in use for %d items", tree.nodes.Len(), total)
				}
			},
		})
	})
}

// depth returns the length of the longest path.
func depth(tree *Tree, root int32) int {
	deepest := 0
	for i := tree.Min(root); i != 0; i = tree.Next(i) {
		d := 0
		for at := i; at != 0; at = tree.nodes.At(at).parent {
			d++
		}
		deepest = max(deepest, d)
	}
	return deepest
}

func TestTreeDoesNotDegenerate(t *testing.T) {
	const n = 100_000
	for name, key := range map[string]func(i int) Key{
		"rising":  func(i int) Key { return Key{A: int64(i)} },
		"falling": func(i int) Key { return Key{A: int64(-i)} },
		"equal":   func(int) Key { return Key{} },
		"zigzag":  func(i int) Key { return Key{A: int64(i * (1 - i&1*2))} },
	} {
		var tree Tree
		var root int32
		for i := range n {
			tree.Insert(&root, key(i), int32(i))
		}
		most := 4 * bits.Len(n)
		if got := depth(&tree, root); got > most {
			t.Errorf("%s: depth %d with %d keys, want at most %d", name, got, n, most)
		}
		for range n - 1000 { // a queue: first out, new ones in at the end
			tree.Delete(&root, tree.Min(root))
		}
		if got, most := depth(&tree, root), 4*bits.Len(1000); got > most {
			t.Errorf("%s: depth %d with 1000 keys left, want at most %d", name, got, most)
		}
		if tree.nodes.Len() != 1000 {
			t.Errorf("%s: %d nodes in use, want 1000", name, tree.nodes.Len())
		}
	}
}

func TestEmptyTreeHasNoFirstNode(t *testing.T) {
	var tree Tree
	if got := tree.Min(0); got != 0 {
		t.Errorf("Min is %d", got)
	}
}

func BenchmarkTreeInsertDelete(b *testing.B) {
	for _, n := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var tree Tree
			var root int32
			nodes := make([]int32, n)
			key := func(i int) Key { return Key{A: int64(Mix(uint64(i)) >> 1)} }
			for i := range nodes {
				nodes[i] = tree.Insert(&root, key(i), int32(i))
			}
			b.ReportAllocs()
			for i := n; b.Loop(); i++ {
				at := i % n
				tree.Delete(&root, nodes[at])
				nodes[at] = tree.Insert(&root, key(i), int32(i))
			}
		})
	}
}
