package pool

import (
	"fmt"
	"math"
	"strings"
)

// FlawOf describes the first damaged or missing field of a pool, or returns "" if there is none. It finds missing fields
// and bytes that are not whole numbers. It cannot tell that a number is wrong.
func FlawOf(l *Schema, fields map[string]string) string {
	im := image(fields)
	for _, name := range []string{"once", "counts", "sum", "past", "cfg"} {
		if flaw := im.flaw(name, 1); flaw != "" {
			return flaw
		}
	}
	for i := range l.Slabs {
		s := &l.Slabs[i]
		if im["h"+s.Key] == "" {
			continue
		}
		if flaw := im.flaw("h"+s.Key, 3); flaw != "" || len(im["h"+s.Key]) != 24 {
			return "the field h" + s.Key + " has foreign content"
		}
		for k := int32(1); k < im.head(s)[0]; k++ {
			f := fmt.Sprint(s.Key, k)
			if _, there := im[f]; !there && s.Name != "insts" {
				continue // it was never used
			}
			if flaw := im.flaw(f, 1); flaw != "" {
				return flaw
			}
		}
	}
	for f, v := range fields {
		switch {
		case isPage(f):
			if flaw := im.flaw(f, pageLen); flaw != "" {
				return flaw
			}
		case strings.HasPrefix(f, "i"), strings.HasPrefix(f, "n"):
			if v == "" || strings.Trim(v, "0123456789,") != "" {
				return fmt.Sprintf("the field %q has foreign content", f)
			}
		}
	}
	return ""
}

// isPage reports whether a field is a page of a large array.
func isPage(f string) bool {
	return strings.Contains(f, "/") && (f[0] >= 'A' && f[0] <= 'Z' || strings.HasPrefix(f, "once/") || strings.HasPrefix(f, "past/"))
}

// flaw describes what is wrong with a field, or returns "". The field must hold least numbers or more.
func (im image) flaw(field string, least int) string {
	s, there := im[field]
	if !there {
		return "the field " + field + " is missing"
	}
	nums := make([]float64, len(s)/8)
	unpack(s, nums)
	bad := len(s)%8 != 0 || len(nums) < least
	for _, n := range nums {
		bad = bad || n != math.Trunc(n) || math.Abs(n) > 1<<64 // bit sets are the largest numbers
	}
	if bad {
		return "the field " + field + " has foreign content"
	}
	return ""
}
