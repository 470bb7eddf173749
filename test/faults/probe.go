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

// roleProbe is the first argument of a fresh process that looks whether anything is stuck.
const roleProbe = "probe"

// finding is what a fresh process finds in one pool after a run.
type finding struct {
	Pool     string        `json:"pool"`
	Granted  bool          `json:"granted"`
	Waited   time.Duration `json:"waited"` // for the grant
	InFlight int           `json:"in_flight"`
	Waiting  int           `json:"waiting"`
	Sent     int64         `json:"sent"` // by workers
	Error    string        `json:"error,omitempty"`
}

// probeWithin is how long a fresh process may take to get a ticket, and quietWithin how long tickets that were left behind may
// stand: a window, and the life of a ticket. The rest is for busy machines; what is stuck stays for leaseExpire at least.
const (
	probeWithin = window + 8*time.Second
	quietWithin = ticketTTL + window + 8*time.Second
)

// probeMain looks at every pool: first whether all tickets come back, then whether it gets one.
func probeMain(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(roleProbe, flag.ContinueOnError)
	url := flags.String("url", "", "of the store")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), poolCount*(quietWithin+probeWithin))
	defer cancel()
	config := gateConfig(*url, leaseExpire)
	config.OneShot = true // it is no member
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

// probe runs a fresh process.
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
