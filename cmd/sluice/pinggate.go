package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// gateWithin is how long a daemon may take to report its health.
const gateWithin = 2 * time.Second

// gateJSON is the output of ping --gate with --json.
type gateJSON struct {
	Gate    string  `json:"gate"`
	Healthy bool    `json:"healthy"`
	MS      float64 `json:"ms"`
}

// pingGate requests a daemon's /healthz, which needs no token.
func pingGate(cmd *cobra.Command, gate string) error {
	at, err := url.Parse(gate)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return &failure{code: exitUsage, message: fmt.Sprintf("--gate: %.80q is not the URL of a daemon", gate), hint: "use --gate http://HOST:PORT"}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), gateWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("healthz").String(), nil)
	if err != nil {
		return err
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &failure{code: exitUnavailable, message: fmt.Sprintf("no daemon answers at %s: %v", at.Redacted(), err), hint: "start one with sluice serve"}
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return &failure{
			code: exitUnavailable, message: fmt.Sprintf("the daemon at %s is not healthy (status %d): %s", at.Redacted(), resp.StatusCode, harmless(string(said))),
			hint: "see the daemon's log",
		}
	}
	var health struct{ Status string }
	if err := json.Unmarshal(said, &health); err != nil || health.Status == "" {
		return &failure{code: exitUnavailable, message: fmt.Sprintf("no daemon answers at %s: another server is there", at.Redacted()), hint: "sluice serve says where it listens when it starts"}
	}
	took := float64(time.Since(began).Microseconds()) / 1e3
	return printLine(cmd, gateJSON{Gate: at.Redacted(), Healthy: true, MS: took}, "%s is healthy, %.1f ms", at.Redacted(), took)
}
