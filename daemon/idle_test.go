package daemon_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
)

// A daemon is idle so long after its last request has ended, not after it has come.
func TestWaitIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := config.Parse("test.yaml", []byte("resources: {api: {limits: [{name: places, concurrency: 1}]}}"), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		c, err := f.GateConfig(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		gate, err := sluice.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gate.Close() }()
		d, err := daemon.New(daemon.Options{File: f, Gate: gate})
		if err != nil {
			t.Fatal(err)
		}
		ask := func() {
			d.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/tickets", http.NoBody))
		}
		begun := time.Now()
		time.AfterFunc(5*time.Minute, ask)
		if !d.WaitIdle(t.Context(), 10*time.Minute) || time.Since(begun) < 15*time.Minute || time.Since(begun) > 17*time.Minute {
			t.Errorf("idle after %v", time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if d.WaitIdle(ctx, 10*time.Minute) {
			t.Error("idle although the context has ended")
		}
	})
}
