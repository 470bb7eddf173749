package sharedlog

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/store"
)

// Position is a place in a log, between two entries. Callers get positions from a [Log] and do not make them.
type Position struct {
	Incarnation uint64
	Segment     int64      // the offset at which the segment begins
	Offset      int64      // bytes of the entries before this place since the incarnation began
	Stamp       store.Time // of the entry before this place; 0 if the incarnation begins here
}

// Compare orders positions by how much of the log a process there knows. The segment does not matter.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Incarnation, q.Incarnation), cmp.Compare(p.Offset, q.Offset))
}

// Moved returns p in the segment that begins at the offset segment.
func (p Position) Moved(segment int64) Position {
	p.Segment = segment
	return p
}

// Index returns where p lies in the bytes of its segment, which begin with a header.
func (p Position) Index() int64 { return HeaderSize + p.Offset - p.Segment }

// String returns the four numbers of p, for [ParsePosition] and for people.
func (p Position) String() string {
	b := make([]byte, 0, 64)
	b = strconv.AppendUint(b, p.Incarnation, 10)
	for _, n := range []int64{p.Segment, p.Offset, int64(p.Stamp)} {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return string(b)
}

var errPosition = errors.New("not a position in a log")

// ParsePosition reads what String wrote.
func ParsePosition(s string) (Position, error) {
	words := strings.Split(s, " ")
	if len(words) != 4 {
		return Position{}, errPosition
	}
	incarnation, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return Position{}, errPosition
	}
	var n [3]int64
	for i, word := range words[1:] {
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil || n[i] < 0 {
			return Position{}, errPosition
		}
	}
	p := Position{Incarnation: incarnation, Segment: n[0], Offset: n[1], Stamp: store.Time(n[2])}
	if !p.valid() {
		return Position{}, errPosition
	}
	return p, nil
}

func (p Position) valid() bool {
	return p.Segment >= 0 && p.Offset >= p.Segment && p.Offset <= maxOffset && p.Stamp >= 0 && p.Stamp <= maxStamp
}

// maxOffset keeps sums from overflowing. At 100 MB/s it lasts for a thousand years.
const maxOffset = 1 << 62

// SortSurvivors puts those who know most first; among equals, the lowest process.
func SortSurvivors(all []Survivor) {
	slices.SortFunc(all, func(a, b Survivor) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Process, b.Process))
	})
}
