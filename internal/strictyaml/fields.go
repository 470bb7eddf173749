package strictyaml

import (
	"reflect"
	"strings"
)

// field is a field of a struct that a file can state.
type field struct {
	name  string
	index int
	omit  bool // left out when it is zero
}

// fields returns the fields of a struct in order; those tagged "-" are not the file's.
func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			all = append(all, field{name, i, options == "omitempty"})
		}
	}
	return all
}

func hasFields(t reflect.Type) bool { return t.Kind() == reflect.Struct && len(fields(t)) > 0 }

// suggest says what an unknown field may have been meant to be.
func suggest(name string, names []field) string {
	best, distance := "", 3
	list := make([]string, len(names))
	for i, f := range names {
		list[i] = f.name
		if n := edits(name, f.name); n < distance && n < len(f.name) {
			best, distance = f.name, n
		}
	}
	if best != "" {
		return "did you mean \"" + best + "\"?"
	}
	return "the fields here are " + strings.Join(list, ", ")
}

// edits is how many letters have to be added, removed, replaced or exchanged with the next to
// make a into b.
func edits(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
