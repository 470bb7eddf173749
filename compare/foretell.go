package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Foretold is what sluice replay says the gate would do, from the provider's log of the run without a gate.
type Foretold struct {
	Finished int     `json:"finished"`
	Refused  int     `json:"throttled"`
	Took     float64 `json:"duration_s"`
}

// foretell replays a log with the limit of the provider and the classes of the fleet.
func foretell(ctx context.Context, sluice string, log []arrival) (*Foretold, error) {
	dir, err := os.MkdirTemp("", "compare")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "access.jsonl"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := json.NewEncoder(file)
	for _, a := range log {
		status := 200
		if !a.accepted {
			status = 429
		}
		if err := lines.Encode(map[string]any{"time": a.at.UTC().Format(time.RFC3339Nano), "caller": a.agent, "status": status, "retry": a.retry, "duration_ms": a.took.Milliseconds()}); err != nil {
			return nil, err
		}
	}
	args := []string{"replay", file.Name(), "--json", "--requests", fmt.Sprintf("%d/%s", limitSize, window)}
	for _, a := range agents() {
		args = append(args, "--class", a.Name+"="+a.Class)
	}
	cmd := exec.CommandContext(ctx, sluice, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir, "SLUICE_CONFIG=", "SLUICE_STORE=")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("sluice replay: %w", err)
	}
	var said struct {
		Gate Foretold `json:"gate"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("sluice replay: %w", err)
	}
	return &said.Gate, nil
}
