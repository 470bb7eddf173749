// Package nearest finds the known name that is closest to a mistyped one.
package nearest

import "strings"

// maxLength bounds the names that are compared.
const maxLength = 64

// Name returns the one of names that name is mistyped for, or that name is the beginning of. It returns the empty string if there is
// none, or if two are equally near.
func Name(name string, names []string) string {
	best, distance, tie := "", 3, false
	for _, n := range names {
		switch d := edits(strings.ToLower(name), strings.ToLower(n)); {
		case d > allowed(n) || d > distance || n == best:
		case d < distance:
			best, distance, tie = n, d, false
		default:
			tie = best != ""
		}
	}
	if best != "" && !tie {
		return best
	}
	return longer(name, names)
}

// allowed is how many typing mistakes a name may have: with two, many short words are one another.
func allowed(name string) int {
	switch {
	case len(name) < 2:
		return 0
	case len(name) < 8:
		return 1
	}
	return 2
}

// longer returns the only name that begins with this one. Two letters say too little.
func longer(name string, names []string) string {
	only := ""
	for _, n := range names {
		if len(name) > 2 && len(n) > len(name) && strings.EqualFold(n[:len(name)], name) {
			if only != "" {
				return ""
			}
			only = n
		}
	}
	return only
}

// edits is how many letters have to be added, removed, replaced or exchanged with the next to
// make a into b.
func edits(a, b string) int {
	if len(a) > maxLength {
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
