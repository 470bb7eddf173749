package config

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/strictyaml"
)

func TestSchemaIsCurrent(t *testing.T) {
	t.Parallel()
	want := generate(t)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := Schema()
	if err != nil || string(got) != string(want) {
		t.Errorf("schema.json is not what the types say: run go generate (%v)", err)
	}
}

func loadSchema(t testing.TB) validator {
	t.Helper()
	var root map[string]any
	src, _ := Schema()
	if err := json.Unmarshal(src, &root); err != nil {
		t.Fatal(err)
	}
	return validator{root}
}

// structs are the mappings of the file, by their names in the schema.
var structs = map[string]reflect.Type{
	"": reflect.TypeFor[File](), "Resource": reflect.TypeFor[Resource](), "Limit": reflect.TypeFor[Limit](), "Light": reflect.TypeFor[Light](),
	"Breaker": reflect.TypeFor[Breaker](), "Backoff": reflect.TypeFor[Backoff](), "Inject": reflect.TypeFor[Inject](), "Key": reflect.TypeFor[Key](),
	"Class": reflect.TypeFor[Class](), "Leases": reflect.TypeFor[Leases](), "Slots": reflect.TypeFor[Slots](), "Agent": reflect.TypeFor[Agent](),
	"Budget": reflect.TypeFor[Budget](), "Retry": reflect.TypeFor[Retry](), "Price": reflect.TypeFor[Price](), "Alerts": reflect.TypeFor[Alerts](),
	"TLS": reflect.TypeFor[TLS](), "Token": reflect.TypeFor[Token](), "DeadLetters": reflect.TypeFor[DeadLetters](),
}

// The schema has every field of the types, with a description, and no others.
func TestSchemaDescribesEveryField(t *testing.T) {
	t.Parallel()
	v := loadSchema(t)
	for name, typ := range structs {
		s := v.root
		if name != "" {
			s = v.root["$defs"].(map[string]any)[name].(map[string]any)
		}
		if either, ok := s["anyOf"].([]any); ok {
			s = either[0].(map[string]any)
		}
		properties, _ := s["properties"].(map[string]any)
		if s["additionalProperties"] != false {
			t.Errorf("%s takes any field", name)
		}
		for i := range typ.NumField() {
			field, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
			if field == "" || field == "-" {
				continue
			}
			p, _ := properties[field].(map[string]any)
			if text, _ := p["description"].(string); text == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
			delete(properties, field)
		}
		if len(properties) > 0 {
			t.Errorf("%s: %v are not in the file", name, properties)
		}
	}
}

// The reference names every field.
func TestReferenceNamesEveryField(t *testing.T) {
	t.Parallel()
	reference := string(read(t, filepath.Join("..", "docs", "configuration.md")))
	for name, typ := range structs {
		for i := range typ.NumField() {
			field, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
			if field != "" && !regexp.MustCompile("`[^`\n]*\\b"+field+"\\b[^`\n]*`").MatchString(reference) && field != "-" {
				t.Errorf("%s.%s is not in docs/configuration.md", name, field)
			}
		}
	}
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	t.Parallel()
	v := loadSchema(t)
	for _, file := range files(t, "good") {
		src := read(t, file)
		if err := v.check(v.root, value(t, file, src), "$"); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		printed, _ := parse(t, string(src)).YAML()
		if err := v.check(v.root, value(t, file, printed), "$"); err != nil {
			t.Errorf("%s, printed: %v", file, err)
		}
	}
	if err := v.check(v.root, value(t, "init", Init()), "$"); err != nil {
		t.Error(err)
	}
}

// The schema catches mistakes within a single field.
func TestSchemaRefusesBadFiles(t *testing.T) {
	t.Parallel()
	v := loadSchema(t)
	for _, name := range []string{
		"unknown-field", "unknown-field-list", "unknown-top", "fraction", "number-in-quotes", "zero-waiting", "negative-burst", "text-for-mapping",
		"list-for-mapping", "mapping-for-list", "text-for-list", "mapping-for-text", "size-word", "size-bare", "size-window", "duration-no-unit",
		"duration-word", "duration-negative", "duration-list", "percent-bare", "percent-fraction", "percent-above", "share-zero", "classes-list", "order",
		"switch", "guard", "light-word", "breaker-samples", "retry-window-one", "limit-no-name", "limit-kind", "limit-scope", "resets-format",
		"store-failure", "budget-size", "budget-euro", "budget-over", "price-missing", "price-negative", "several",
	} {
		src := read(t, filepath.Join("testdata", "bad", name+".yaml"))
		if err := v.check(v.root, value(t, name, src), "$"); err == nil {
			t.Errorf("%s passes", name)
		}
	}
}

// value returns a file as JSON values.
func value(t testing.TB, name string, src []byte) any {
	t.Helper()
	doc, err := strictyaml.Parse(name, "file", src)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Empty() {
		return nil
	}
	return jsonOf(doc.Root())
}

func jsonOf(n *strictyaml.Node) any {
	switch n.Kind {
	case strictyaml.Mapping:
		m := map[string]any{}
		for _, e := range n.Entries {
			m[e.Key] = jsonOf(e.Value)
		}
		return m
	case strictyaml.List:
		l := []any{}
		for _, item := range n.Items {
			l = append(l, jsonOf(item))
		}
		return l
	case strictyaml.Scalar:
		if f, err := strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64); err == nil && n.Plain {
			return f
		}
		if b, err := strconv.ParseBool(n.Text); err == nil && n.Plain {
			return b
		}
		return n.Text
	}
	return nil
}

// validator knows as much of JSON Schema as ours uses, and refuses the rest.
type validator struct{ root map[string]any }

func (v validator) check(s map[string]any, x any, at string) error {
	for keyword, want := range s {
		if err := v.keyword(s, keyword, want, x, at); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

func (v validator) keyword(s map[string]any, keyword string, want, x any, at string) error {
	object, _ := x.(map[string]any)
	list, _ := x.([]any)
	number, isNumber := x.(float64)
	text, isText := x.(string)
	switch keyword {
	case "$schema", "$defs", "title", "description":
	case "$ref":
		name := strings.TrimPrefix(want.(string), "#/$defs/")
		return v.check(v.root["$defs"].(map[string]any)[name].(map[string]any), x, at)
	case "type":
		types, several := want.([]any)
		if !several {
			types = []any{want}
		}
		if !slices.ContainsFunc(types, func(t any) bool { return isType(t.(string), x) }) {
			return fmt.Errorf("%v is no %v", x, want)
		}
	case "enum":
		if !slices.Contains(want.([]any), x) {
			return fmt.Errorf("%v is not one of %v", x, want)
		}
	case "pattern":
		if isText && !regexp.MustCompile(want.(string)).MatchString(text) {
			return fmt.Errorf("%q does not match %s", text, want)
		}
	case "minimum":
		if isNumber && number < want.(float64) {
			return fmt.Errorf("%v is below %v", x, want)
		}
	case "maximum":
		if isNumber && number > want.(float64) {
			return fmt.Errorf("%v is above %v", x, want)
		}
	case "minItems":
		if list != nil && len(list) < int(want.(float64)) {
			return fmt.Errorf("%d items are too few", len(list))
		}
	case "maxItems":
		if list != nil && len(list) > int(want.(float64)) {
			return fmt.Errorf("%d items are too many", len(list))
		}
	case "required":
		for _, name := range want.([]any) {
			if _, there := object[name.(string)]; object != nil && !there {
				return fmt.Errorf("%v is missing", name)
			}
		}
	case "properties":
		for name, p := range want.(map[string]any) {
			if value, there := object[name]; there {
				if err := v.check(p.(map[string]any), value, at+"."+name); err != nil {
					return err
				}
			}
		}
	case "additionalProperties":
		properties, _ := s["properties"].(map[string]any)
		for name, value := range object {
			if _, known := properties[name]; known {
				continue
			}
			if want == false {
				return fmt.Errorf("unknown field %s", name)
			}
			if err := v.check(want.(map[string]any), value, at+"."+name); err != nil {
				return err
			}
		}
	case "items":
		for i, item := range list {
			if err := v.check(want.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case "anyOf":
		var errs []error
		for _, one := range want.([]any) {
			err := v.check(one.(map[string]any), x, at)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
		return fmt.Errorf("none fits: %v", errs)
	default:
		return fmt.Errorf("keyword %s is unknown to this test", keyword)
	}
	return nil
}

func isType(name string, x any) bool {
	switch x := x.(type) {
	case nil:
		return name == "null"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && x == math.Trunc(x)
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}
