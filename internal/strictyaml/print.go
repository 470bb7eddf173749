package strictyaml

import (
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

// print writes a node in block style, one line per value. Lists of texts are on one line.
func (n *Node) print() []byte {
	var b strings.Builder
	if len(n.Entries) == 0 {
		return []byte("{}\n")
	}
	n.printEntries(&b, "")
	return []byte(b.String())
}

func (n *Node) printEntries(b *strings.Builder, indent string) {
	for i, e := range n.Entries {
		if i > 0 {
			b.WriteString(indent)
		}
		b.WriteString(quote(e.Key, false) + ":")
		e.Value.printAfter(b, indent)
	}
}

// printAfter writes what follows a key.
func (n *Node) printAfter(b *strings.Builder, indent string) {
	switch {
	case n.Kind == Scalar || n.inline():
		b.WriteString(" " + n.onLine() + "\n")
	case n.Kind == Mapping:
		b.WriteString("\n" + indent + "  ")
		n.printEntries(b, indent+"  ")
	default:
		b.WriteString("\n")
		for _, item := range n.Items {
			b.WriteString(indent + "  - ")
			if item.Kind == Scalar || item.inline() {
				b.WriteString(item.onLine() + "\n")
			} else {
				item.printEntries(b, indent+"    ")
			}
		}
	}
}

// inline reports whether a node is a list of texts, or empty.
func (n *Node) inline() bool {
	for _, item := range n.Items {
		if item.Kind != Scalar {
			return false
		}
	}
	return len(n.Entries) == 0
}

func (n *Node) onLine() string {
	switch n.Kind {
	case Scalar:
		return quote(n.Text, n.Plain)
	case Mapping:
		return "{}"
	}
	texts := make([]string, len(n.Items))
	for i, item := range n.Items {
		texts[i] = item.onLine()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

var (
	needsNone = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.%+/-]*( ?[A-Za-z0-9_.%+/-]+|:[A-Za-z0-9_.%+/-]+)*$`)
	otherwise = lazyregexp.New(`^(?i:null|true|false|[-+.0-9_]+|0[xob][0-9a-f_]*|[0-9.]+e[0-9]+)$`) // would not be read as text
)

// endless matches .inf and .nan.
var endless = lazyregexp.New(`^-?\.(inf|nan)$`)

// quote quotes a text if necessary. Plain values such as numbers have no quotes.
func quote(s string, plain bool) string {
	if needsNone.MatchString(s) && (plain || !otherwise.MatchString(s)) || plain && (decimalNumber.MatchString(s) || endless.MatchString(s)) {
		return s
	}
	return strconv.Quote(s)
}
