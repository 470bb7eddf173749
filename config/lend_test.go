package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A lent configuration parses to the same configuration, without the daemon's own settings.
func TestLend(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("testdata", "good", "everything.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("everything.yaml", src, environment)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tokens) == 0 || f.Alerts.Webhook == "" || f.Listen == "" {
		t.Fatal("the sample has nothing to leave out")
	}
	text := f.Lend()
	for _, secret := range []string{"upstream_ca", f.Tokens[0].Hash, f.Alerts.Webhook, f.Listen, "inject", "\ntokens:", "webhook"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%q is lent", secret)
		}
	}
	lent, err := Parse("lent", text, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(lent.Resources) != len(f.Resources) || !reflect.DeepEqual(lent.Classes, f.Classes) || !reflect.DeepEqual(lent.Agents, f.Agents) ||
		!reflect.DeepEqual(lent.Budgets, f.Budgets) || !reflect.DeepEqual(lent.Routes, f.Routes) {
		t.Errorf("lent is\n%s", text)
	}
	for name, r := range lent.Resources {
		if !reflect.DeepEqual(r.Limits, f.Resources[name].Limits) {
			t.Errorf("%s: %+v", name, r.Limits)
		}
	}
}

// Presets are lent as they are in force, and variables as their values.
func TestLendPresets(t *testing.T) {
	f := Default()
	f.AddPresets()
	if _, err := Parse("lent", f.Lend(), os.LookupEnv); err != nil {
		t.Error(err)
	}
	f, err := Parse("a.yaml", []byte("resources: {a: {limits: [{name: m, size: \"${SIZE}\"}]}}"), func(string) (string, bool) { return "7/min", true })
	if err != nil {
		t.Fatal(err)
	}
	if text := string(f.Lend()); strings.Contains(text, "SIZE") || !strings.Contains(text, "7/min") {
		t.Error(text)
	}
}
