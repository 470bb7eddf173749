package strictyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

// maxExpanded bounds a value with its variables replaced.
const maxExpanded = 64 << 10

var variable = lazyregexp.New(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// Expand replaces ${NAME} and ${NAME:-default} in values, and $$ with $. The default applies to a variable that is
// unset or empty. Keys are not changed.
func (d *Doc) Expand(env func(name string) (value string, set bool)) {
	if d.root != nil {
		d.expand(d.root, "", env)
	}
}

func (d *Doc) expand(n *Node, path string, env func(string) (string, bool)) {
	for _, e := range n.Entries {
		d.expand(e.Value, Join(path, e.Key), env)
	}
	for i, item := range n.Items {
		d.expand(item, Index(path, i), env)
	}
	if n.Kind != Scalar || n.expanded || !strings.Contains(n.Text, "$") {
		return
	}
	text, wrong, hint := expandText(n.Text, env)
	if wrong != "" {
		d.fail(n.Line, n.Column, path, wrong).Hint(hint)
	}
	n.Text, n.source, n.expanded = text, n.Text, true
}

// expandText returns the expanded text, or an error message and a hint.
func expandText(text string, env func(string) (string, bool)) (out, wrong, hint string) {
	var b strings.Builder
	for {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:at])
		text = text[at:]
		if after, ok := strings.CutPrefix(text, "$$"); ok {
			b.WriteByte('$')
			text = after
			continue
		}
		m := variable.FindStringSubmatch(text)
		if m == nil {
			return "", "a lone $", "a variable is ${NAME} or ${NAME:-default}, the sign itself is $$"
		}
		value, set := env(m[1])
		fallback, has := strings.CutPrefix(m[2], ":-")
		switch {
		case has && value == "":
			value = fallback
		case !set:
			return "", fmt.Sprintf("the variable %s is not set", m[1]), fmt.Sprintf("set it, or give it a default: ${%s:-...}", m[1])
		}
		b.WriteString(value)
		text = text[len(m[0]):]
		if b.Len() > maxExpanded {
			return "", fmt.Sprintf("with its variables replaced it is longer than %d bytes", maxExpanded), ""
		}
	}
	if !utf8.ValidString(b.String()) {
		return "", "with its variables replaced it is not UTF-8", ""
	}
	return b.String(), "", ""
}

// escape returns the text that expands to s.
func escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }
