package provider

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
)

// Usual returns the part of the API and the cost of an ordinary request, for callers that know no more than part.
// The cost is nil for dialects that count only requests.
func Usual(d Dialect, part string) (string, []sluice.Amount) {
	if v, ok := d.(*vendor); ok && v.part != nil && part != "" {
		return cmp.Or(v.part("", part), part), nil // a class of models, or a part that only paths name
	}
	c, ok := d.(Coster)
	if !ok {
		return part, nil
	}
	const any = "/"
	if part == "" {
		return c.Part(any), c.Cost("GET", any)
	}
	words := strings.Split(part, "_")
	slices.Reverse(words) // code_search is /search/code
	for _, path := range []string{"/" + part, "/" + strings.Join(words, "/")} {
		if c.Part(path) == part {
			return part, c.Cost("GET", path)
		}
	}
	return part, c.Cost("GET", any)
}

// PartOf returns the part of the API that a response is about: that of the model that the caller names, under the name
// that [Usual] gives to requests for it, else the one that the response states.
func PartOf(d Dialect, model string, o *Observation) string {
	if model != "" {
		part, _ := Usual(d, model)
		return part
	}
	if len(o.Limits) == 0 {
		return ""
	}
	return o.Limits[0].Resource
}
