//go:build unix

package main

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestSignalsReachTheCommand(t *testing.T) {
	p := start(t, nil, "run", "--quiet", "--", child(t), "signals")
	p.says("ready")
	for _, sig := range []syscall.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT,
	} {
		p.signal(sig)
		p.says(sig.String())
	}
	p.signal(syscall.SIGTERM)
	p.says(syscall.SIGTERM.String())
	p.ends(7)
}

// Signals that were ignored at the start, as with nohup, stay ignored, also for the command.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	p := startCommand(t, nil, "sh", "-c", `trap "" HUP; exec sluice run --quiet -- "$0" signals`, child(t))
	p.says("ready")
	p.signal(syscall.SIGHUP)
	p.signal(syscall.SIGUSR1)
	p.says(syscall.SIGUSR1.String())
	p.signal(syscall.SIGTERM)
	p.says(syscall.SIGTERM.String())
	p.ends(7)
}

// Without a terminal only the command stops: its heartbeats go on, and it can be continued through the started process.
func TestCommandIsContinued(t *testing.T) {
	p := start(t, nil, "run", "--quiet", "--", child(t), "stop")
	p.says("ready")
	awake := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() { // more than once: the first may come before it has stopped
		again := time.NewTicker(10 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-awake:
				return
			case <-again.C:
				_ = p.cmd.Process.Signal(syscall.SIGCONT)
			}
		}
	})
	line, err := p.stdout.ReadString('\n') // or an error in the end
	close(awake)
	sender.Wait()
	if line != "goes on\n" {
		t.Errorf("it said %q, %v", line, err)
	}
	p.ends(0)
}

// A command that was told to end is not started again.
func TestNoRetryAfterBeingToldToEnd(t *testing.T) {
	p := start(t, nil, "run", "--quiet", "--", child(t), "tempfail")
	p.says("ready")
	p.signal(syscall.SIGINT)
	p.says("told to end")
	p.ends(exitNotYet)
	if line, err := p.stderr.ReadString('\n'); err == nil {
		t.Errorf("it said %q", line)
	}
}

func TestSignalEndsTheWaitForARetry(t *testing.T) {
	config := filepath.Join(t.TempDir(), "slow.yaml")
	text := "retry_windows: {p2: [1h, 2h]}\nretry: {deadline: 3h}\nresources: {api: {limits: [{name: minute, size: 80/min}]}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := start(t, nil, "run", "--config", config, "--class", "p2", "--", "sh", "-c", "exit 75")
		p.warns("next attempt (2 of 6)")
		p.signal(sig)
		p.ends(128 + int(sig))
		p.warns("while waiting to start the command")
	}
}
