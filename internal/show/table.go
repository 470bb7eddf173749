package show

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Column is one column of a table.
type Column struct {
	Head  string
	Right bool // aligned right, for figures
	// Least is the smallest width of the column if there is little room; 0 means that it does not shrink.
	Least int
	// Drop orders the columns that are dropped if shrinking is not enough: the highest first; 0 is never dropped.
	Drop int
}

// Cell is a text in a table. The text must already be harmless.
type Cell struct {
	Text   string
	Colour Colour
}

// Table is aligned rows under a head.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	Indent  string
}

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Lines returns the head and the rows. If width is not 0, lines stay within width cells: columns shrink first, then are
// dropped. Empty columns are not shown.
func (t *Table) Lines(s Style, width int) []string {
	widths := t.widths(width)
	head := make([]Cell, len(t.Columns))
	for i, c := range t.Columns {
		head[i] = Cell{c.Head, Dim}
	}
	lines := []string{t.line(s, head, widths, width)}
	for _, row := range t.Rows {
		lines = append(lines, t.line(s, row, widths, width))
	}
	return lines
}

const gap = 2 // between columns

// widths returns the width of each column; -1 means not shown.
func (t *Table) widths(width int) []int {
	widths := make([]int, len(t.Columns))
	for i := range t.Columns {
		widths[i] = -1
		for _, row := range t.Rows {
			if i < len(row) && row[i].Text != "" {
				widths[i] = max(widths[i], Width(row[i].Text))
			}
		}
		if widths[i] >= 0 {
			widths[i] = max(widths[i], Width(t.Columns[i].Head))
		}
	}
	if width <= 0 {
		return widths
	}
	for over := t.total(widths) - width; over > 0; over = t.total(widths) - width {
		if !t.shrink(widths, over) && !t.drop(widths) {
			break // the lines will be cut
		}
	}
	return widths
}

func (t *Table) total(widths []int) int {
	sum := Width(t.Indent) - gap
	for _, w := range widths {
		if w >= 0 {
			sum += w + gap
		}
	}
	return sum
}

// shrink narrows the widest column that can shrink.
func (t *Table) shrink(widths []int, over int) bool {
	widest := -1
	for i, c := range t.Columns {
		if c.Least > 0 && widths[i] > c.Least && (widest < 0 || widths[i] > widths[widest]) {
			widest = i
		}
	}
	if widest < 0 {
		return false
	}
	widths[widest] -= min(over, max((widths[widest]-t.Columns[widest].Least)/2, 1))
	return true
}

func (t *Table) drop(widths []int) bool {
	first := -1
	for i, c := range t.Columns {
		if widths[i] >= 0 && c.Drop > 0 && (first < 0 || c.Drop > t.Columns[first].Drop) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	widths[first] = -1
	return true
}

func (t *Table) line(s Style, row []Cell, widths []int, width int) string {
	var b strings.Builder
	b.WriteString(t.Indent)
	blank := 0 // spaces that are written only if text follows
	for i, c := range t.Columns {
		if widths[i] < 0 {
			continue
		}
		var cell Cell
		if i < len(row) {
			cell = row[i]
		}
		text := s.clip(cell.Text, widths[i])
		pad := widths[i] - Width(text)
		if c.Right {
			blank, pad = blank+pad, 0
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", blank))
			b.WriteString(s.Paint(cell.Colour, text))
			blank = 0
		}
		blank += pad + gap
	}
	if width <= 0 {
		return b.String()
	}
	return s.clip(b.String(), width) // mark figures that are cut
}

// clip shortens a text, painted or not, to width cells and shows that it did.
func (s Style) clip(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	return ansi.Truncate(text, width, s.ellipsis(width))
}
