package config

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
)

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

func gate(t testing.TB, f *File) sluice.Config {
	t.Helper()
	c, err := f.GateConfig(noon)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// One line turns off each feature, and changes nothing else.
func TestOneLineTurnsItOff(t *testing.T) {
	t.Parallel()
	on := func() sluice.Config { return gate(t, parse(t, string(read(t, "testdata/good/plain.yaml")))) }
	api := func(change func(*sluice.Resource)) func(*sluice.Config) {
		return func(c *sluice.Config) {
			r := c.Resources["api"]
			change(&r)
			c.Resources["api"] = r
		}
	}
	if c := on(); c.NoShares || c.NoPacing || c.NoCascade || c.Leases.Off || c.Resources["api"].Light.Off || c.Resources["api"].Breaker.Off {
		t.Fatalf("something is off that nobody turned off: %+v", c)
	}
	for file, change := range map[string]func(*sluice.Config){
		"light-off":        api(func(r *sluice.Resource) { r.Light = sluice.Light{Off: true} }),
		"breaker-mode-off": api(func(r *sluice.Resource) { r.Breaker = sluice.Breaker{Off: true} }),
		"breaker-off":      api(func(r *sluice.Resource) { r.Breaker = sluice.Breaker{Off: true} }),
		"shares-off":       func(c *sluice.Config) { c.NoShares = true },
		"pacing-off":       func(c *sluice.Config) { c.NoPacing = true },
		"cascade-off":      func(c *sluice.Config) { c.NoCascade = true },
		"leases-off":       func(c *sluice.Config) { c.Leases = sluice.Leases{Off: true} },
		"slots-off":        func(*sluice.Config) {}, // as they are without being mentioned
		"slots-on":         func(c *sluice.Config) { c.Slots = sluice.Slots{Max: 3, TTL: 5 * time.Minute} },
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got := gate(t, parse(t, string(read(t, "testdata/good/"+file+".yaml"))))
			want := on()
			change(&want)
			got.Price, want.Price = nil, nil // functions cannot be compared
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

func TestOnStoreFailure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]store.OnFailure{
		"": store.FailShare, "on_store_failure: share": store.FailShare, "on_store_failure: closed": store.FailClosed, "on_store_failure: open": store.FailOpen,
	} {
		if got := gate(t, parse(t, text)).OnStoreFailure; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A file that passes the checks can be opened.
func TestGateOpens(t *testing.T) {
	t.Parallel()
	for _, file := range files(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			opens(t, parse(t, string(read(t, file))))
		})
	}
}

func opens(t testing.TB, f *File) {
	t.Helper()
	c := gate(t, f)
	c.Store = "mem:"
	g, err := sluice.Open(context.Background(), c)
	if err != nil {
		printed, _ := f.YAML()
		t.Fatalf("%s\n%v", printed, err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestGateOfTheSample(t *testing.T) {
	t.Parallel()
	c := gate(t, parse(t, string(read(t, "testdata/good/sample.yaml"))))
	want := []sluice.Limit{
		{Name: "burst", Kind: sluice.Bucket, Size: 5, Window: time.Second, Burst: 10, Unit: "requests"},
		{Name: "day", Kind: sluice.Fixed, Size: 10_000, Window: 24 * time.Hour, Unit: "requests", Reset: time.Date(2026, time.March, 5, 0, 0, 0, 0, time.UTC)},
		{Name: "inflight", Kind: sluice.Concurrency, Size: 20, Unit: "requests"},
		{Name: "each-agent", Kind: sluice.Bucket, Size: 5, Window: time.Second, Burst: 50, Unit: "work", Per: []sluice.Scope{sluice.PerAgent}},
	}
	if got := c.Resources["search-api"].Limits; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := c.Agents["blog-autopilot"]; got.Class != "p1" || got.User != "me" {
		t.Errorf("got %+v", got)
	}
	if c.Store != "file:" || c.Slots.Max != 3 || len(c.Classes) != 3 || c.Classes[0] != (sluice.Class{Name: "p0", Share: 40}) {
		t.Errorf("got %+v", c)
	}
}

// The order of the file is the order of the classes.
func TestClassesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	want := []sluice.Class{{Name: "people", Share: 50}, {Name: "builds", Share: 25}, {Name: "crawlers", Share: 25}}
	c := gate(t, parse(t, string(read(t, "testdata/good/other-classes.yaml"))))
	if !reflect.DeepEqual(c.Classes, want) {
		t.Errorf("got %+v, want %+v", c.Classes, want)
	}
	if len(c.Retry.Windows) != 0 {
		t.Errorf("windows of classes that there are not: %v", c.Retry.Windows)
	}
}

func TestDefaultIsTheEmptyFile(t *testing.T) {
	t.Parallel()
	if got, want := parse(t, ""), Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	twice := Default()
	twice.Defaults()
	if !reflect.DeepEqual(twice, Default()) {
		t.Error("filling in defaults twice is not the same as once")
	}
	roundTrip(t, Default())
}
