package config_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// A gate can be built from every file that check accepts.
func TestCheckedFileOpens(t *testing.T) {
	for name, text := range map[string]string{
		"reserve":      "resources: {api: {reserve: 100%}}",
		"light":        "resources: {api: {light: {green: 99%, red: 98%}}}",
		"short":        "resources: {api: {limits: [{name: a, size: 80/2ms}]}}",
		"1ms":          "resources: {api: {limits: [{name: a, size: 80/ms}]}}",
		"1ms fixed":    "resources: {api: {limits: [{name: a, size: 80/ms, kind: fixed}]}}",
		"1ms bucket":   "resources: {api: {limits: [{name: a, size: 80/ms, kind: bucket}]}}",
		"slack":        "resources: {api: {arrival_slack: 1h, limits: [{name: a, size: 80/s}, {name: b, size: 1/ms}, {name: c, size: 5/s, burst: 9}, {name: d, size: 7/min, kind: fixed}]}}",
		"100d":         "resources: {api: {limits: [{name: a, size: 1099511627776/100d}, {name: b, size: 1/100d, kind: fixed}]}}",
		"use":          "resources: {api: {use: 1%, limits: [{name: a, size: 1/s, burst: 10}]}}",
		"use odd":      "resources: {api: {use: 37%, limits: [{name: a, size: 1000000/d, burst: 4000}]}}",
		"use odd big":  "resources: {api: {use: 99%, limits: [{name: a, size: 1000000000/d, burst: 1000000000}]}}",
		"use odd big2": "resources: {api: {use: 99%, limits: [{name: a, size: 4000000/d, burst: 500000000}]}}",
		"shares":       "classes: {a: {share: 1%}, b: {share: 1%}, c: {share: 1%}, d: {share: 1%}, e: {share: 1%}, f: {share: 1%}, g: {share: 1%}, h: {share: 93%}}",
		"noshare":      "classes: {a: {share: 100%}}",
		"noshare2":     "classes: {a: {share: 99%}, b: {}}",
		"noshare3":     "classes: {a: {share: 100%}, b: {}}",
		"backoff":      "resources: {api: {backoff: {start: 1d, factor: 100, cap: 1d}}}",
		"backoff2":     "resources: {api: {backoff: {start: 1h}}}",
		"leases":       "leases: {renew: 1s, expire: 1001ms}\nslots: {max: 1048576, ttl: 1001ms}",
		"leases2":      "leases: {renew: 1s}\nslots: on",
		"tools":        "tools: {x: 0, y: 1099511627776}",
		"wait":         "resources: {api: {max_waiting: 1048576, ttl: 1s}}",
		"resets":       "resources: {api: {limits: [{name: a, size: 1/h, kind: fixed, resets: 00:30 +05:45}]}}",
		"resets ms":    "resources: {api: {limits: [{name: a, size: 1/s, kind: fixed, resets: 00:30 +05:45}]}}",
		"slots off":    "leases: off\nslots: off",
		"leases off":   "leases: off",
	} {
		f, err := config.Parse(name, []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Logf("%s: refused: %v", name, err)
			continue
		}
		c, err := f.GateConfig(time.Now())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Store = "mem:"
		g, err := sluice.Open(context.Background(), c)
		if err != nil {
			t.Errorf("%s: check finds nothing, and opening fails: %v", name, err)
			continue
		}
		_ = g.Close()
	}
}
