package pricefile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/pricefile"
	"github.com/sluicehq/sluice/provider"
)

func TestAFileOfPricesIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	synctest.Test(t, func(t *testing.T) {
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(`{"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 0}}`)
		current, err := pricefile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		p := provider.DefaultPrices().WithMap(current)
		check := func(want float64) {
			t.Helper()
			time.Sleep(10 * time.Second)
			if price, _ := p.Find("m"); price.Input != want {
				t.Errorf("%v, want %v", price.Input, want)
			}
		}
		check(1)
		write(`{"m": {"input_cost_per_token": 0.00002, "output_cost_per_token": 0}}`)
		check(20)
		for _, wrong := range []string{`{"m": `, `[]`, `{}`, `{"x": {}}`} {
			write(wrong)
			check(20)
			if _, err := pricefile.Open(path); err == nil {
				t.Errorf("%s is taken for prices", wrong)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		check(20)
		write(`{"m": {"input_cost_per_token": 0.000003, "output_cost_per_token": 0}}`)
		check(3)
	})
	if _, err := pricefile.Open(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("%v", err)
	}
}
