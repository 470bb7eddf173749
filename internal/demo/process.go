package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	startWithin = 20 * time.Second // for a busy machine
	endWithin   = 8 * time.Second  // longer than any part needs
	maxLine     = 64 << 10
	maxTold     = 4 << 10 // bytes of a part's error output
)

// part is one of the demo's processes. It ends when its input ends, so no process survives the demo, however the demo
// ends.
type part struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	told  tail
	ended chan struct{}
	err   error // set once it has ended

	stopping sync.Once
}

// launch starts a part. heard gets each line that it prints, in order.
func (d *demo) launch(name string, env []string, heard func(line []byte), args ...string) (*part, error) {
	p := &part{name: name, cmd: exec.Command(d.Self, args...), ended: make(chan struct{})}
	p.cmd.Args[0] = "sluice" // independent of the file's name
	p.cmd.Env = append(append([]string{}, d.env...), env...)
	p.cmd.Stderr = &p.told
	p.cmd.SysProcAttr = apart()
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s could not be started: %w", name, err)
	}
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			heard(lines.Bytes())
		}
		if lines.Err() != nil { // a line is too long
			_, _ = io.Copy(io.Discard, out) // the part must not block
		}
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// stop ends a part and waits for its end.
func (p *part) stop() {
	p.stopping.Do(func() {
		_ = p.in.Close() // it may already have ended
		late := time.NewTimer(endWithin)
		defer late.Stop()
		select {
		case <-p.ended:
		case <-late.C:
			_ = p.cmd.Process.Kill()
		}
	})
	<-p.ended
}

// gone returns the error for a part that ended too early.
func (p *part) gone() error {
	<-p.ended
	why := "it ended by itself"
	if p.err != nil {
		why = p.err.Error()
	}
	if told := p.told.String(); told != "" {
		why += ": " + told
	}
	return fmt.Errorf("%s is gone: %s", p.name, why)
}

// await waits until a part reports that it is ready.
func await[T any](ctx context.Context, p *part, ready <-chan T) (v T, err error) {
	late := time.NewTimer(startWithin)
	defer late.Stop()
	select {
	case v = <-ready:
		return v, nil
	case <-p.ended:
		return v, p.gone()
	case <-ctx.Done():
		return v, context.Cause(ctx)
	case <-late.C:
		return v, fmt.Errorf("%s did not start within %v: %w", p.name, startWithin, errSlow)
	}
}

var errSlow = errors.New("the machine is too busy, or something keeps it from listening on 127.0.0.1")

// tail keeps the end of the text that is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - maxTold; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
