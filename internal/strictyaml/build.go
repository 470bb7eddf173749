package strictyaml

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// builder converts the tree of the YAML parser into ours.
type builder struct {
	doc     *Doc
	anchors map[string]ast.Node
	nodes   int
	stopped bool
}

// node converts one value. It records errors, and returns null for an invalid value.
func (b *builder) node(n ast.Node, path string, depth int) *Node {
	out := &Node{}
	out.Line, out.Column = start(n)
	if _, twice := b.doc.at[path]; !twice {
		b.doc.at[path] = out
	}
	if b.nodes++; b.nodes > maxTokens || depth > maxNesting {
		b.stop(out)
	}
	if b.stopped {
		return out
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		b.mapping(out, n.Values, path, depth)
	case *ast.MappingValueNode:
		b.mapping(out, []*ast.MappingValueNode{n}, path, depth)
	case *ast.SequenceNode:
		out.Kind = List
		for i, v := range n.Values {
			out.Items = append(out.Items, b.node(v, Index(path, i), depth+1))
		}
	case *ast.AnchorNode:
		*out = *b.node(n.Value, path, depth+1)
		b.doc.at[path] = out
		b.anchors[n.Name.String()] = n.Value
	case *ast.AliasNode:
		b.alias(out, n, path, depth)
	case *ast.TagNode:
		b.fail(out, path, "tags such as "+n.Start.Value+" have no meaning here")
	case *ast.NullNode:
	case *ast.LiteralNode:
		out.Kind, out.Text = Scalar, n.Value.Value
	case *ast.StringNode:
		out.Kind, out.Text = Scalar, n.Value
		out.Plain = n.Token.Type != token.SingleQuoteType && n.Token.Type != token.DoubleQuoteType
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text, out.Plain = Scalar, n.GetToken().Value, true
	default:
		b.fail(out, path, "this kind of YAML has no meaning here")
	}
	return out
}

// start returns where a value begins. For the YAML parser a block mapping begins with its first colon.
func start(n ast.Node) (line, column int) {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return place(n.Values[0].Key.GetToken())
		}
	case *ast.MappingValueNode:
		return place(n.Key.GetToken())
	}
	return place(n.GetToken())
}

func (b *builder) fail(at *Node, path, message string) {
	b.doc.fail(at.Line, at.Column, path, message)
}

// stop ends the building of a tree that is too large. Its error has no path, because paths there help no reader.
func (b *builder) stop(at *Node) {
	switch {
	case b.stopped:
	case b.nodes > maxTokens:
		b.doc.fail(0, 0, "", fmt.Sprintf("its anchors stand for more than %d values", maxTokens))
	default:
		b.fail(at, "", "it is nested too deeply")
	}
	b.stopped = true
}

// alias inserts the value of an anchor. An anchor is known only when it is complete, so none contains itself.
func (b *builder) alias(out *Node, n *ast.AliasNode, path string, depth int) {
	value, known := b.anchors[n.Value.String()]
	if !known {
		b.fail(out, path, fmt.Sprintf("there is no anchor &%s before this", n.Value.String()))
		return
	}
	line, column := out.Line, out.Column
	*out = *b.node(value, path, depth+1)
	out.Line, out.Column = line, column
	b.doc.at[path] = out
}

func (b *builder) mapping(out *Node, values []*ast.MappingValueNode, path string, depth int) {
	out.Kind = Mapping
	seen := map[string]int{}
	for _, v := range values {
		var e Entry
		e.Line, e.Column = place(v.Key.GetToken())
		key, ok := b.key(v.Key)
		if !ok {
			b.doc.fail(e.Line, e.Column, path, key)
			continue
		}
		e.Key = key
		if first, twice := seen[key]; twice {
			b.doc.fail(e.Line, e.Column, Join(path, key), fmt.Sprintf("this is there already, on line %d", first))
			continue
		}
		seen[key] = e.Line
		b.doc.keys[Join(path, key)] = &e
		e.Value = b.node(v.Value, Join(path, key), depth+1)
		if e.Value.Kind == Null {
			e.Value.Line, e.Value.Column = e.Line, e.Column // a missing value is shown at its key
		}
		out.Entries = append(out.Entries, e)
		if b.stopped {
			return
		}
	}
}

// key returns a key's text, or an error message and false.
func (b *builder) key(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return k.GetToken().Value, true
	case *ast.NullNode:
		return k.GetToken().Value, true
	case *ast.MergeKeyNode:
		return "merge keys (<<) have no meaning here: write the fields out", false
	}
	return "a key has to be plain text", false
}
