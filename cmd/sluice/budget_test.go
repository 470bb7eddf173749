package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/provider"
)

// The command that first notices a used-up budget posts to the webhook, once.
func TestBudgetAlertIsPosted(t *testing.T) {
	var mu sync.Mutex
	var got []inspect.Alert
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a inspect.Alert
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil || r.URL.Path != "/s3cr3t" {
			t.Errorf("%s: %v", r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, a)
	}))
	defer hook.Close()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("SLUICE_STORE", "")
	t.Setenv("HOOK", hook.URL+"/s3cr3t")
	config := filepath.Join(dir, "sluice.yaml")
	text := "resources: {llm: {limits: [{name: minute, size: 100/min}]}}\nbudgets: [{name: day, size: 0.01 usd/day, over: alert}]\nalerts: {webhook: \"${HOOK}\"}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		var out, errs bytes.Buffer
		if code := run([]string{"acquire", "llm", "--config", config, "--agent", "a", "--cost", "usd=0.006"}, &out, &errs); code != exitOK || strings.Contains(errs.String(), "s3cr3t") {
			t.Fatalf("exit %d: %s%s", code, &out, &errs)
		}
	}
	if len(got) != 1 || got[0].Budget != "day" || got[0].Over != sluice.OverAlert || got[0].UsedUSD != 0.012 || got[0].Agent != "a" || got[0].Resource != "llm" {
		t.Errorf("got %+v", got)
	}
	books, err := filepath.Glob(filepath.Join(dir, "sluice", "budgets", "*"))
	if err != nil || len(books) != 2 {
		t.Errorf("the books are %q, %v", books, err)
	}
}

// Usage stated with release is priced by the ticket's model, and a budget then refuses.
func TestReleasedUsageIsPriced(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("SLUICE_STORE", "")
	config := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(config, []byte("resources: {anthropic: {provider: anthropic}}\nbudgets: [{name: day, size: 1 usd/day}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sluice := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append(args, "--config", config), &out, &errs); code != want {
			t.Fatalf("%q: exit %d: %s%s", args, code, &out, &errs)
		}
		return out.String()
	}
	var got struct{ Ticket string }
	if err := json.Unmarshal([]byte(sluice(exitOK, "acquire", "anthropic", "--model", "claude-opus-4-5", "--hold", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	sluice(exitOK, "release", got.Ticket, "--usage", "input_tokens=100000,output_tokens=50000")
	sluice(exitRefused, "acquire", "anthropic", "--model", "claude-haiku-4-5")
}

// Usage stated with release has dollars in the report also without a budget. A model without a price is flagged.
func TestReleasedUsageIsInTheReport(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("SLUICE_STORE", "")
	config := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(config, []byte("resources: {anthropic: {provider: anthropic}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sluice := func(into any, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append(args, "--config", config), &out, &errs); code != exitOK {
			t.Fatalf("%q: exit %d: %s%s", args, code, &out, &errs)
		}
		if into != nil {
			if err := json.Unmarshal(out.Bytes(), into); err != nil {
				t.Fatal(err, out.String())
			}
		}
	}
	var want int64
	for _, model := range []string{"claude-opus-4-5", "nobody-knows"} {
		var got struct{ Ticket string }
		sluice(&got, "acquire", "anthropic", "--model", model, "--hold", "--json")
		sluice(nil, "release", got.Ticket, "--usage", "input_tokens=100000,output_tokens=50000")
		micros, _ := provider.DefaultPrices().Micros(model, &provider.Usage{Input: 100_000, Output: 50_000})
		want += micros
	}
	var report struct {
		Resources []struct {
			Total struct {
				USD      float64
				Unpriced int
			}
		}
	}
	sluice(&report, "report", "--json")
	if len(report.Resources) != 1 || report.Resources[0].Total.USD != float64(want)/1e6 || report.Resources[0].Total.Unpriced != 1 {
		t.Errorf("%+v, want %d", report, want)
	}
}
