package flat

// Tree is a forest of ordered trees over one slab of nodes. The trees are treaps, so every operation takes O(log n)
// steps and touches few records. A tree is identified by its root, which the caller keeps; 0 is the empty tree. The
// zero Tree is ready for use, on the heap.
type Tree struct {
	nodes Slab[treeNode]
	seed  *uint64
}

// Open places the trees in a space, or on the heap when space is nil.
func (t *Tree) Open(space *Space) {
	t.nodes.Open(space)
	t.seed = Single[uint64](space)
}

// Key orders a tree; equal keys keep the order in which they were inserted.
type Key struct{ A, B int64 }

// Less reports whether k comes before l.
func (k Key) Less(l Key) bool { return k.A < l.A || k.A == l.A && k.B < l.B }

type treeNode struct {
	key                 Key
	value               int32
	left, right, parent int32
	priority            uint32
}

// Insert adds value under key and returns its node.
func (t *Tree) Insert(root *int32, key Key, value int32) int32 {
	i := t.nodes.New()
	n := t.nodes.At(i)
	*n = treeNode{key: key, value: value, priority: t.priority()}
	if *root == 0 {
		*root = i
		return i
	}
	for at := *root; ; {
		a := t.nodes.At(at)
		next := &a.right
		if key.Less(a.key) {
			next = &a.left
		}
		if *next == 0 {
			*next = i
			n.parent = at
			break
		}
		at = *next
	}
	for n.parent != 0 && t.nodes.At(n.parent).priority < n.priority {
		t.rotateUp(root, i)
	}
	return i
}

// priority returns the next priority, which decides which of two nodes is above the other. It only has to be free of
// patterns.
func (t *Tree) priority() uint32 {
	if t.seed == nil {
		t.seed = new(uint64)
	}
	*t.seed++
	return uint32(Mix(*t.seed))
}

// Delete removes node i.
func (t *Tree) Delete(root *int32, i int32) {
	n := t.nodes.At(i)
	for n.left != 0 && n.right != 0 {
		if t.nodes.At(n.left).priority > t.nodes.At(n.right).priority {
			t.rotateUp(root, n.left)
		} else {
			t.rotateUp(root, n.right)
		}
	}
	child := n.left
	if child == 0 {
		child = n.right
	}
	if child != 0 {
		t.nodes.At(child).parent = n.parent
	}
	t.replace(root, n.parent, i, child)
	t.nodes.Recycle(i)
}

// Min returns the first node, or 0 in an empty tree.
func (t *Tree) Min(root int32) int32 {
	if root == 0 {
		return 0
	}
	for {
		left := t.nodes.At(root).left
		if left == 0 {
			return root
		}
		root = left
	}
}

// Next returns the node after i, or 0 after the last.
func (t *Tree) Next(i int32) int32 {
	if right := t.nodes.At(i).right; right != 0 {
		return t.Min(right)
	}
	for {
		parent := t.nodes.At(i).parent
		if parent == 0 || t.nodes.At(parent).left == i {
			return parent
		}
		i = parent
	}
}

// Value returns the value of node i.
func (t *Tree) Value(i int32) int32 { return t.nodes.At(i).value }

// KeyOf returns the key of node i.
func (t *Tree) KeyOf(i int32) Key { return t.nodes.At(i).key }

// rotateUp swaps node i with its parent, keeping the order.
func (t *Tree) rotateUp(root *int32, i int32) {
	n := t.nodes.At(i)
	pi := n.parent
	p := t.nodes.At(pi)
	var moved int32
	if p.left == i {
		moved, p.left, n.right = n.right, n.right, pi
	} else {
		moved, p.right, n.left = n.left, n.left, pi
	}
	if moved != 0 {
		t.nodes.At(moved).parent = pi
	}
	n.parent, p.parent = p.parent, i
	t.replace(root, n.parent, pi, i)
}

func (t *Tree) replace(root *int32, parent, old, now int32) {
	if parent == 0 {
		*root = now
		return
	}
	p := t.nodes.At(parent)
	if p.left == old {
		p.left = now
	} else {
		p.right = now
	}
}
