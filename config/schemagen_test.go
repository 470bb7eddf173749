package config

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/invopop/jsonschema"
)

// Patterns of what is written as text. The file's own rules are stricter; these are for
// editors, to say early what is certainly wrong.
var patterns = map[reflect.Type]string{
	reflect.TypeFor[Duration]():  `^([0-9]+d|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`,
	reflect.TypeFor[Percent]():   `^(100|[1-9][0-9]?) ?%$`,
	reflect.TypeFor[Rate]():      `^[0-9_]+ ?/ ?[0-9]*(ms|s|sec|second|m|min|minute|h|hour|d|day)$`,
	reflect.TypeFor[Money]():     `^[0-9]+(\.[0-9]{1,6})? ?usd( ?/ ?(day|month))?$`,
	reflect.TypeFor[TimeOfDay](): `^([01][0-9]|2[0-3]):[0-5][0-9] .+$`,
}

// offableTypes can be written as one word.
var offableTypes = []string{"Light", "Breaker", "Leases", "Slots"}

const variableRef = "#/$defs/Variable"

// generate makes the schema from the types and their comments.
func generate(t *testing.T) []byte {
	t.Helper()
	r := &jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, RequiredFromJSONSchemaTags: true, FieldNameTag: "yaml", Mapper: mapper,
	}
	if err := r.AddGoComments("github.com/sluicehq/sluice/config", "."); err != nil {
		t.Fatal(err)
	}
	s := r.Reflect(&File{})
	s.Title, s.Description = "Sluice configuration", "What stands in the configuration file of Sluice. Every field has a default."
	class := r.Reflect(&Class{})
	class.Version = ""
	s.Definitions["Class"] = class
	provider, _ := s.Definitions["Resource"].Properties.Get("provider")
	for _, name := range providers {
		provider.Enum = append(provider.Enum, name)
	}
	if prices, ok := s.Properties.Get("prices"); ok {
		prices.Properties = jsonschema.NewProperties()
		prices.Properties.Set(priceFile, &jsonschema.Schema{Type: "string", Description: "The path of a file of prices, in the JSON format of LiteLLM's price map."})
	}
	relax(s)
	for _, name := range offableTypes {
		s.Definitions[name] = &jsonschema.Schema{
			AnyOf: []*jsonschema.Schema{s.Definitions[name], {Enum: []any{"on", "off", true, false}}, {Ref: variableRef}},
		}
	}
	s.Definitions["Variable"] = &jsonschema.Schema{
		Type: "string", Pattern: `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`, Description: "A value with a variable of the environment in it.",
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// mapper describes the types whose text form differs from their Go type.
func mapper(t reflect.Type) *jsonschema.Schema {
	if pattern, ok := patterns[t]; ok {
		return &jsonschema.Schema{Type: "string", Pattern: pattern}
	}
	if w, ok := reflect.Zero(t).Interface().(interface{ words() []string }); ok {
		s := &jsonschema.Schema{}
		for _, word := range w.words() {
			s.Enum = append(s.Enum, word)
		}
		if t == reflect.TypeFor[Switch]() {
			s.Enum = append(s.Enum, true, false)
		}
		return s
	}
	switch t {
	case reflect.TypeFor[Classes]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Ref: "#/$defs/Class"}}
	case reflect.TypeFor[Window]():
		two := uint64(2)
		return &jsonschema.Schema{
			Type: "array", MinItems: &two, MaxItems: &two,
			Items: &jsonschema.Schema{Type: "string", Pattern: patterns[reflect.TypeFor[Duration]()]},
		}
	}
	return nil
}

// relax allows what YAML and variables can make of a value: an empty section is null, and any value may be a variable.
func relax(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	for _, def := range s.Definitions {
		relax(def)
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			relax(p.Value)
		}
	}
	if s.AdditionalProperties != jsonschema.FalseSchema {
		relax(s.AdditionalProperties)
	}
	relax(s.Items)
	switch {
	case s.Type == "object" || s.Type == "array":
		s.Extras = map[string]any{"type": []string{s.Type, "null"}}
		s.Type = ""
	case s.Type == "integer" || s.Type == "number" || s.Pattern != "" || len(s.Enum) > 0:
		only := *s
		only.Description = ""
		*s = jsonschema.Schema{Description: s.Description, AnyOf: []*jsonschema.Schema{&only, {Ref: variableRef}}}
	}
}
