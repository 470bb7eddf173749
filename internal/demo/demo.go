package demo

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"
)

// Options configures a demo.
type Options struct {
	Script Script
	// Self is the path of this program. The demo starts it with PartArgs for each of its processes.
	Self string
	// PartArgs are the arguments before the name of a part. The parts are: provider, with the flags of a mock; gate,
	// with the provider's URL; agent. Each part prints a line of JSON when it is ready, and ends when its input ends.
	PartArgs []string
	// Show is called with the progress, several times a second. It must not block for long.
	Show func(View)
}

// View is the progress of a demo.
type View struct {
	Phase   int // counted from 0; see Titles
	Elapsed time.Duration
	Agents  []Progress
}

// Progress is the progress of one agent.
type Progress struct {
	Agent
	State
}

// Titles are the titles of the phases.
var Titles = [...]string{"each agent backs off on its own", "the same agents through the gate"}

type demo struct {
	Options
	env    []string
	client *http.Client // for the provider's statistics
}

// Run runs both phases. A bad result is not an error: the report describes it.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Self == "" {
		return nil, errors.New("demo: there is no program to start")
	}
	if o.Show == nil {
		o.Show = func(View) {}
	}
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	d := &demo{Options: o, env: own(os.Environ()), client: &http.Client{Transport: transport, Timeout: statsWithin}}
	before, err := d.phase(ctx, 0)
	if err != nil {
		return nil, err
	}
	after, err := d.phase(ctx, 1)
	if err != nil {
		return nil, err
	}
	return newReport(&o.Script, before, after), nil
}

// own returns the environment without variables that would misdirect the parts: settings of the user's own gate,
// proxies, and the user's API key.
func own(env []string) []string {
	var kept []string
	for _, v := range env {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		if !strings.HasPrefix(name, "SLUICE_") && !strings.HasPrefix(name, "ANTHROPIC_") && !strings.HasSuffix(name, "_PROXY") {
			kept = append(kept, v)
		}
	}
	return kept
}
