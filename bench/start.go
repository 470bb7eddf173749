package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// StartRow is what a command costs from its start to its end, beside a Go program that does nothing.
type StartRow struct {
	Name     string  `json:"name"`
	Wall     float64 `json:"wall_ms"`   // median
	CPU      float64 `json:"cpu_ms"`    // median of user and system time
	Ratio    float64 `json:"ratio"`     // of the wall times, to the empty program
	CPURatio float64 `json:"cpu_ratio"` // of the processor times
}

// The rows of the part start.
const (
	startEmpty    = "empty Go program"
	startVersion  = "sluice version"
	startAcquire  = "sluice acquire, on files"
	startPrevious = "the same, previous version"
	startRedis    = "sluice acquire, on Redis, %d agents"
)

// startCrowds are numbers of agents that the pool in Redis knows.
var startCrowds = []int{1000, 10_000}

// openCrowd opens a gate at a URL on which so many agents have taken tickets. It is set in sluiceused.go.
var openCrowd func(ctx context.Context, url, config string, agents int) (stop func() error, err error)

// starter is a program whose runs are measured.
type starter struct {
	row  StartRow
	args []string
	wall []time.Duration
	cpu  []time.Duration
}

// measureStart runs commands in turn, opts.Starts times each.
func measureStart(ctx context.Context, opts Options, progress io.Writer) (rows []StartRow, err error) {
	dir, err := os.MkdirTemp("", "sluice-bench-start-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(progress, "measuring: %d starts of a command\n", opts.Starts)
	all, err := starters(ctx, dir, opts.Previous)
	if err != nil {
		return nil, err
	}
	crowds, stop, err := redisStarters(ctx, dir)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return nil, err
	}
	all = append(all, crowds...)
	for range opts.Starts {
		for _, s := range all {
			if err := s.once(ctx, dir); err != nil {
				return nil, err
			}
		}
	}
	rows = make([]StartRow, len(all))
	for i, s := range all {
		s.row.Wall, s.row.CPU = milliseconds(middle(s.wall)), milliseconds(middle(s.cpu))
		s.row.Ratio, s.row.CPURatio = s.row.Wall/all[0].row.Wall, s.row.CPU/all[0].row.CPU
		rows[i] = s.row
	}
	return rows, nil
}

const startConfig = "resources:\n  api:\n    limits: [{name: minute, size: 1000000/min}]\n"

// redisStarters returns commands on pools of a Redis, and what stops that.
func redisStarters(ctx context.Context, dir string) (all []*starter, stop func() error, err error) {
	if openCrowd == nil {
		return nil, func() error { return nil }, nil
	}
	server, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		return nil, func() error { return nil }, err
	}
	stops := []func() error{server.Stop}
	stop = func() (err error) {
		for _, f := range slices.Backward(stops) {
			err = errors.Join(err, f())
		}
		return err
	}
	for _, n := range startCrowds {
		url := fmt.Sprintf("%s?prefix=crowd%d", server.URL(), n)
		end, err := openCrowd(ctx, url, startConfig, n)
		if err != nil {
			return nil, stop, err
		}
		stops = append(stops, end)
		s := &starter{row: StartRow{Name: fmt.Sprintf(startRedis, n)}, args: []string{filepath.Join(dir, "sluice"), "acquire", "api", "--config", filepath.Join(dir, "sluice.yaml"), "--store", url}}
		if err := s.once(ctx, dir); err != nil {
			return nil, stop, err
		}
		s.wall, s.cpu = nil, nil
		all = append(all, s)
	}
	return all, stop, nil
}

// startBars are the ratios of a prototype to sluice version.
func startBars(rows []StartRow) (all []Bar) {
	of := func(name string) float64 {
		for _, row := range rows {
			if row.Name == name {
				return row.Wall
			}
		}
		return math.NaN()
	}
	for i, n := range startCrowds {
		if name := fmt.Sprintf(startRedis, n); of(name) > 0 {
			all = append(all, bar(name+": times sluice version", of(name)/of(startVersion), 0, []float64{1.7, 3.7}[i]))
		}
	}
	return all
}

// starters builds the programs, and opens the store so that no measured run has to make it.
func starters(ctx context.Context, dir, previous string) ([]*starter, error) {
	config := filepath.Join(dir, "sluice.yaml")
	empty, sluice := filepath.Join(dir, "empty"), filepath.Join(dir, "sluice")
	if err := errors.Join(
		os.WriteFile(empty+".go", []byte("package main\n\nfunc main() {}\n"), 0o600),
		os.WriteFile(config, []byte(startConfig), 0o600),
	); err != nil {
		return nil, err
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluicehq/sluice").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for _, program := range [][]string{{empty, empty + ".go"}, {sluice, "./cmd/sluice"}} {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-tags=grpcnotrace", "-o", program[0], program[1])
		cmd.Dir = strings.TrimSpace(string(root))
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w: %s", err, out)
		}
	}
	acquire := []string{"acquire", "api", "--config", config, "--store", "file:" + filepath.Join(dir, "store")}
	all := []*starter{
		{row: StartRow{Name: startEmpty}, args: []string{empty}},
		{row: StartRow{Name: startVersion}, args: []string{sluice, "version"}},
		{row: StartRow{Name: startAcquire}, args: append([]string{sluice}, acquire...)},
	}
	if previous != "" {
		all = append(all, &starter{row: StartRow{Name: startPrevious}, args: append([]string{previous}, acquire...)})
	}
	for _, s := range all {
		if err := s.once(ctx, dir); err != nil {
			return nil, err
		}
		s.wall, s.cpu = nil, nil
	}
	return all, nil
}

// once runs the program once, with state of its own and without the settings of who measures.
func (s *starter) once(ctx context.Context, home string) error {
	cmd := exec.CommandContext(ctx, s.args[0], s.args[1:]...)
	cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	err := cmd.Run()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(s.args, " "), err, &said)
	}
	s.wall = append(s.wall, time.Since(began))
	s.cpu = append(s.cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	return nil
}

func middle(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func printStart(w io.Writer, rows []StartRow) {
	if len(rows) > 0 {
		fmt.Fprintf(w, "\none command, from its start to its end\tms\tCPU ms\tx empty\tCPU x empty\n")
	}
	for _, row := range rows {
		fmt.Fprintf(w, "  %s\t%.1f\t%.1f\t%.1f\t%.1f\n", row.Name, row.Wall, row.CPU, row.Ratio, row.CPURatio)
	}
}
