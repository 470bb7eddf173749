//go:build linux || darwin

package daemon_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/filestore"
)

// A change that another process prevents is refused as a whole, and changes already made are undone. A size that
// another process holds down causes a warning.
func TestReloadBesideAnotherProcess(t *testing.T) {
	const both = "resources:\n  first: {limits: [{name: places, concurrency: 2}]}\n  second: {limits: [{name: minute, size: 5/min}]}\n"
	url := "file:" + t.TempDir()
	parse := func(text string) (*config.File, sluice.Config) {
		t.Helper()
		f, err := config.Parse("sluice.yaml", []byte(text), none)
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.GateConfig(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c.Store = url
		return f, c
	}
	st, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	f, c := parse(both)
	gate, err := sluice.OpenWithStore(t.Context(), st, c)
	if err != nil {
		t.Fatal(err)
	}
	text := both
	d, err := daemon.New(daemon.Options{File: f, Gate: gate, Base: http.DefaultTransport, Reloading: daemon.Reloading{
		Load: func() (*config.File, error) { f, _ := parse(text); return f, nil },
		Open: func(ctx context.Context, f *config.File) (*sluice.Gate, error) {
			c, err := f.GateConfig(time.Now())
			if err != nil {
				return nil, err
			}
			c.Store = url
			return sluice.OpenWithStore(ctx, st, c)
		},
		Follow: func(_ *config.File, g *sluice.Gate) { gate = g },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Settle()
	delete(c.Resources, "first")
	other, err := sluice.Open(t.Context(), c) // as if another process had
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()

	text = strings.NewReplacer("concurrency: 2", "concurrency: 7", "5/min", "5/h").Replace(both)
	if _, err := d.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), `"second"`) || !strings.Contains(err.Error(), "processes that are running") {
		t.Errorf("%v", err)
	}
	if s, err := gate.Resource(t.Context(), "first"); err != nil || s.Limits[0].Limit != 2 {
		t.Errorf("half of it is in force: %+v %v", s.Limits, err)
	}
	text = strings.NewReplacer("concurrency: 2", "concurrency: 7", "5/min", "9/min").Replace(both)
	done, err := d.Reload(t.Context())
	if err != nil || len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "resource second: limit minute is 5") {
		t.Errorf("%+v %v", done, err)
	}
	if s, err := gate.Resource(t.Context(), "first"); err != nil || s.Limits[0].Limit != 7 {
		t.Errorf("what nobody stands in the way of: %+v %v", s.Limits, err)
	}
	defer func() { _ = gate.Close() }()
}
