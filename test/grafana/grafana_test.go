package grafana

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

const (
	file = "../../deploy/grafana/sluice.json"
	sdk  = "github.com/grafana/grafana-foundation-sdk/go"
)

// faults reads a dashboard as its schema demands it: a missing or an unknown field, a wrong type and a word that an enumeration does not
// have are faults.
func faults(t *testing.T, text []byte) error {
	t.Helper()
	types := cog.NewRuntime() // what is not registered is taken as it is
	types.RegisterPanelcfgVariant(bargauge.VariantConfig())
	types.RegisterPanelcfgVariant(stat.VariantConfig())
	types.RegisterPanelcfgVariant(timeseries.VariantConfig())
	types.RegisterDataqueryVariant(prometheus.VariantConfig())
	var board, strict dashboard.Dashboard
	var parts struct {
		Panels []struct{ FieldConfig json.RawMessage }
	}
	// The strict reading drops panels that have no fault, and does not look into fieldConfig.
	if err := errors.Join(listed(strict.UnmarshalJSONStrict(text)), json.Unmarshal(text, &board), json.Unmarshal(text, &parts)); err != nil {
		return err
	}
	for i, p := range board.Panels {
		if p.Panel == nil { // a row
			continue
		}
		var fields dashboard.FieldConfigSource
		if err := listed(fields.UnmarshalJSONStrict(parts.Panels[i].FieldConfig)); err != nil {
			return err
		}
		if _, plain := p.Panel.Options.(map[string]any); plain {
			return fmt.Errorf("a panel of type %s is not checked: register it", p.Panel.Type)
		}
		for _, q := range p.Panel.Targets {
			if reflect.Indirect(reflect.ValueOf(q)).Type() != reflect.TypeFor[prometheus.Dataquery]() {
				return fmt.Errorf("%s: a query is a %T", *p.Panel.Title, q)
			}
		}
	}
	return errors.Join(board.Validate(), words(t, reflect.ValueOf(board), "dashboard"))
}

// listed is an error of the strict reading, which is a list, also if it is empty.
func listed(err error) error {
	if err == nil || err.Error() == "" {
		return nil
	}
	return err
}

// enums are the values of each enumeration, by package and type. Strict reading takes any string for them.
var enums = map[string]map[string]bool{}

// enum returns the values that the source of a type has for it, none if it is no enumeration.
func enum(t *testing.T, of reflect.Type) map[string]bool {
	t.Helper()
	key := of.PkgPath() + "." + of.Name()
	if values, ok := enums[key]; ok {
		return values
	}
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", of.PkgPath()).Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "types_gen.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name, typed := spec.Type.(*ast.Ident)
		literal, constant := spec.Values[0].(*ast.BasicLit)
		if typed && constant && name.Name == of.Name() && literal.Kind == token.STRING {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values[value] = true
		}
		return true
	})
	enums[key] = values
	return values
}

// words looks for values that are not in their enumerations.
func words(t *testing.T, v reflect.Value, at string) error {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return words(t, v.Elem(), at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := words(t, v.Field(i), at+"."+v.Type().Field(i).Name); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := words(t, v.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case reflect.String:
		if !strings.HasPrefix(v.Type().PkgPath(), sdk) {
			return nil
		}
		if known := enum(t, v.Type()); len(known) > 0 && !known[v.String()] {
			return fmt.Errorf("%s: %q is not one of %s", at, v.String(), v.Type().Name())
		}
	}
	return nil
}

func TestTheDashboardFitsGrafanasSchema(t *testing.T) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := faults(t, text); err != nil {
		t.Error(err)
	}
	if len(enums) < 10 {
		t.Errorf("only %d enumerations were looked at", len(enums))
	}
	// Each of these slips is found, so what is not found is not there.
	for old, slip := range map[string]string{
		`"graphTooltip"`:                 `"graphTooltips"`,
		`"refresh": "10s"`:               `"refresh": 10`,
		`"showPercentChange": false, `:   ``,
		`"textMode": "value"`:            `"textMode": "words"`,
		`"drawStyle": "line"`:            `"drawStyle": "lines"`,
		`"drawStyle": "line", `:          `"drawn": true, `,
		`"legendFormat": "store"`:        `"legend": "store"`,
		`"instant": true`:                `"instant": "yes"`,
		`"displayMode": "lcd"`:           `"displayMode": 1`,
		`"mode": "absolute", "steps": [`: `"mode": "absolute", "stages": [`,
		`"type": "stat"`:                 `"type": "stats"`,
	} {
		if n := bytes.Count(text, []byte(old)); n == 0 {
			t.Errorf("the dashboard has no %s", old)
			continue
		}
		changed := bytes.Replace(text, []byte(old), []byte(slip), 1)
		if !json.Valid(changed) {
			t.Fatalf("%s is no JSON", slip)
		}
		if err := faults(t, changed); err == nil {
			t.Errorf("%s instead of %s is not found", slip, old)
		}
	}
}
