package strictyaml

import (
	"reflect"
	"strings"

	"github.com/sluicehq/sluice/internal/nearest"
)

// field is a field of a struct that a file can set.
type field struct {
	name  string
	index int
	omit  bool // left out if it is zero
}

// fields returns the fields of a struct in order, without those tagged "-".
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

// suggest returns a hint with the field that was probably meant by an unknown one.
func suggest(name string, names []field) string {
	list := make([]string, len(names))
	for i, f := range names {
		list[i] = f.name
	}
	if best := nearest.Name(name, list); best != "" {
		return "did you mean \"" + best + "\"?"
	}
	return "the fields here are " + strings.Join(list, ", ")
}
