package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startWithin = time.Minute
	stopWithin  = 20 * time.Second
)

// served is a running daemon.
type served struct {
	address string
	process *os.Process
	done    chan struct{} // closed when it has ended
	ended   error
	said    *tail
}

// limits returns the limits of the resource. They are a little larger than the load.
func limits(tickets int) (second, minute int) { return tickets*3/2 + 10, tickets*72 + 600 }

// configuration returns the daemon's configuration. Only its limits make requests wait.
func configuration(o options) string {
	second, minute := limits(o.tickets)
	return fmt.Sprintf(`resources:
  %s:
    max_waiting: 100000
    limits:
      - {name: second, size: %d/s}
      - {name: minute, size: %d/min}
      - {name: inflight, concurrency: %d}
`, resource, second, minute, 2*o.conns)
}

// serve starts a daemon on a store. dir holds its files.
func serve(ctx context.Context, o options, dir, store string) (*served, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte(configuration(o)), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(o.sluice, "serve", "--json", "--config", file, "--store", store, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "SLUICE_CONFIG=", "SLUICE_STORE=", fmt.Sprintf("GOMAXPROCS=%d", o.cores))
	cmd.SysProcAttr = apart()
	s := &served{done: make(chan struct{}), said: &tail{}}
	hello := &first{line: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = hello, s.said
	started := make(chan error)
	go func() { // Linux ends the daemon when the thread that started it ends
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.ended = cmd.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w (make build builds it)", o.sluice, err)
	}
	s.process = cmd.Process
	if err := s.greeted(ctx, hello); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

// greeted waits until the daemon prints its address.
func (s *served) greeted(ctx context.Context, hello *first) error {
	timer := time.NewTimer(startWithin)
	defer timer.Stop()
	select {
	case line := <-hello.line:
		var said struct {
			Listen []string `json:"listen"`
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil || len(said.Listen) != 1 {
			return fmt.Errorf("the daemon said %.200q", line)
		}
		s.address = strings.TrimPrefix(said.Listen[0], "http://")
		return nil
	case <-s.done:
		return fmt.Errorf("the daemon has ended: %s", s.said)
	case <-timer.C:
		return errors.New("the daemon does not start")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the daemon. It returns an error if the daemon does not end cleanly.
func (s *served) stop() error {
	_ = s.process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		_ = s.process.Kill()
		<-s.done
		return fmt.Errorf("the daemon did not end within %s", stopWithin)
	}
	if s.ended != nil {
		return fmt.Errorf("the daemon ended with %w: %s", s.ended, s.said)
	}
	return nil
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const maxTail = 4 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text = append(t.text, b...); len(t.text) > maxTail {
		t.text = append(t.text[:0], t.text[len(t.text)-maxTail:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// first sends the first line that is written to it, and ignores the rest.
type first struct {
	text []byte
	told bool
	line chan string
}

func (f *first) Write(b []byte) (int, error) {
	if !f.told {
		f.text = append(f.text, b...)
		if line, _, ok := strings.Cut(string(f.text), "\n"); ok || len(f.text) > 64<<10 {
			f.told, f.text = true, nil
			f.line <- line
		}
	}
	return len(b), nil
}
