package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/sluicehq/sluice"
)

// roleProbe is the first argument of a fresh process that checks whether anything is stuck.
const roleProbe = "probe"

// finding is the state of one pool after a run, as a fresh process sees it.
type finding struct {
	Pool     string        `json:"pool"`
	Granted  bool          `json:"granted"`
	Waited   time.Duration `json:"waited"` // until the grant
	InFlight int           `json:"in_flight"`
	Waiting  int           `json:"waiting"`
	Sent     int64         `json:"sent"` // requests of the workers
	Error    string        `json:"error,omitempty"`
}

// probeWithin is how long a fresh process may wait for a ticket. quietWithin is how long abandoned tickets may stay:
// the life of a ticket and a window. Both add 8 s for a busy machine. Anything that is stuck stays for at least
// leaseExpire.
const (
	probeWithin = window + 8*time.Second
	quietWithin = ticketTTL + window + 8*time.Second
)

// probeMain waits until each pool has no tickets left, then acquires one from it.
func probeMain(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(roleProbe, flag.ContinueOnError)
	url := flags.String("url", "", "of the store")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), poolCount*(quietWithin+probeWithin))
	defer cancel()
	config := gateConfig(*url, leaseExpire)
	config.OneShot = true // it must not become a member
	gate, err := sluice.Open(ctx, config)
	if err != nil {
		return err
	}
	var found []finding
	for _, name := range poolNames {
		found = append(found, probe(ctx, gate, name))
	}
	return errors.Join(json.NewEncoder(out).Encode(found), gate.Close())
}

func probe(ctx context.Context, gate *sluice.Gate, name string) finding {
	f := finding{Pool: name}
	for end := time.Now().Add(quietWithin); ; {
		s, err := gate.Resource(ctx, name)
		if err != nil {
			f.Error = err.Error()
			return f
		}
		f.InFlight, f.Waiting, f.Sent = s.InFlight, 0, s.Sent
		for _, n := range s.Waiting {
			f.Waiting += n
		}
		if f.InFlight == 0 && f.Waiting == 0 || time.Now().After(end) {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	limited, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	began := time.Now()
	ticket, err := gate.Acquire(limited, sluice.Request{Resource: name, Agent: "probe"})
	f.Waited, f.Granted = time.Since(began), err == nil
	if err == nil {
		err = ticket.Close()
	}
	if err != nil {
		f.Error = err.Error()
	}
	return f
}

// probe runs a fresh process and returns its findings.
func (f *fleet) probe(ctx context.Context, url string) ([]finding, error) {
	cmd := exec.CommandContext(ctx, f.self, roleProbe, "-url", url)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+f.stateHome(0))
	var said tailBuffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("a fresh process: %w: %s", err, oneLine(said.String()))
	}
	var found []finding
	if err := json.Unmarshal(out, &found); err != nil {
		return nil, fmt.Errorf("a fresh process said: %w", err)
	}
	return found, nil
}
