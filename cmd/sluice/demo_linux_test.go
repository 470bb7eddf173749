package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/demo"
)

// startDemo starts a demo whose temporary files, and the user's state, are in a directory of its own.
func startDemo(t *testing.T, args ...string) (p *process, temp string) {
	t.Helper()
	temp = t.TempDir()
	return start(t, []string{"TMPDIR=" + temp, "XDG_STATE_HOME=" + filepath.Join(temp, "state")}, append([]string{"demo", "--fast"}, args...)...), temp
}

// living returns the processes of a session, except for its leader.
func living(t *testing.T, leader int) (all []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has just ended
		}
		// The name of the program may contain anything: what follows comes after its last parenthesis.
		var state string
		var parent, group, session int
		rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
		if n, _ := fmt.Sscan(rest, &state, &parent, &group, &session); n == 4 && session == leader && name != fmt.Sprintf("/proc/%d/stat", leader) && state != "Z" {
			all = append(all, name)
		}
	}
	return all
}

// leavesNothing waits until nothing is left of a demo, neither processes nor files.
func leavesNothing(t *testing.T, p *process, temp string) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		processes := living(t, p.cmd.Process.Pid)
		files, err := filepath.Glob(filepath.Join(temp, "*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(processes)+len(files) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-late.C:
			t.Fatalf("left are %q and %q", processes, files)
		}
	}
}

// upTo reads lines up to one that begins with prefix.
func (p *process) upTo(prefix string) {
	p.t.Helper()
	for said := ""; ; {
		line, err := p.stdout.ReadString('\n')
		if strings.HasPrefix(line, prefix) {
			return
		}
		if said += line; err != nil {
			rest, _ := io.ReadAll(p.stderr)
			p.t.Fatalf("it said %q (%v), want %q; on stderr %q", said, err, prefix, rest)
		}
	}
}

// The demo runs in real time, with a provider that refuses late requests. On a machine that stalls for a second, it
// reports that it did not come out as promised, and why. In the slow suite it has to come out as promised.
func TestDemoSaysHowItCameOut(t *testing.T) {
	t.Parallel()
	r, text := playDemo(t)
	if r.Calls != 132 || r.Before.Throttled == 0 || r.Before.Retries == 0 || r.Before.WastedUSD <= 0 {
		t.Errorf("%s", text)
	}
	for _, phase := range []demo.Phase{r.Before, r.After} {
		if !phase.Finished || phase.Done != 132 || phase.Accepted != 132 || len(phase.Classes) != 3 || len(phase.Agents) != 6 || phase.Sent != phase.Accepted+phase.Throttled {
			t.Errorf("%+v", phase)
		}
	}
	if r.After.Throttled >= r.Before.Throttled {
		t.Errorf("%d refusals with the gate, %d without", r.After.Throttled, r.Before.Throttled)
	}
	if r.OK {
		checkPromises(t, r, text)
	}
}

// checkPromises checks a demo that came out as it should.
func checkPromises(t *testing.T, r *demo.Report, text []byte) {
	t.Helper()
	if a := r.After; r.Before.WallS <= a.WallS || a.Throttled != 0 || a.Seen429 != 0 || a.Sent != 132 || a.Retries != 0 || a.WastedUSD != 0 || a.PeakRate == 0 || a.WallS < r.IdealS-1 {
		t.Errorf("%s", text)
	}
}

// playDemo runs a whole demo. Its exit code, its verdict and its reasons agree, and it leaves nothing behind.
func playDemo(t *testing.T) (*demo.Report, []byte) {
	t.Helper()
	p, temp := startDemo(t, "--json")
	text, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	told, err := io.ReadAll(p.stderr)
	if err != nil || len(told) > 0 {
		t.Errorf("on stderr %q, %v", told, err)
	}
	var got, want any
	r := &demo.Report{}
	for _, err := range []error{json.Unmarshal(text, &got), json.Unmarshal([]byte(demoShape), &want), json.Unmarshal(text, r)} {
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	exit := exitOK
	if !r.OK {
		exit = int(exitNotAsPromised)
		t.Logf("it did not come out as promised: %q", r.Why)
	}
	if p.ends(exit); r.OK == (len(r.Why) > 0) {
		t.Errorf("%s", text)
	}
	if left := living(t, p.cmd.Process.Pid); len(left) > 0 { // it waits for them
		t.Errorf("left are %q", left)
	}
	leavesNothing(t, p, temp)
	checkShape(t, "demo", got, want)
	return r, text
}

func TestDemoEndsAtASignal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		when   string
	}{{syscall.SIGINT, "1 of 2: "}, {syscall.SIGTERM, "2 of 2: "}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			p, temp := startDemo(t)
			p.upTo(c.when)
			n := 0
			for end := time.Now().Add(20 * time.Second); n < 7 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) { // six agents and a provider
				n = len(living(t, p.cmd.Process.Pid))
			}
			if n < 7 {
				t.Errorf("%d processes", n)
			}
			p.signal(c.signal)
			p.warns("error: " + c.signal.String() + " while the demo ran")
			p.ends(128 + int(c.signal))
			leavesNothing(t, p, temp)
		})
	}
}

// A killed demo cannot end its processes, so they notice it themselves.
func TestDemoThatIsKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	p, temp := startDemo(t)
	p.upTo("2 of 2: ")
	if files, err := filepath.Glob(filepath.Join(temp, "sluice-demo-*")); len(files) != 1 {
		t.Errorf("%q, %v", files, err)
	}
	p.signal(syscall.SIGKILL)
	leavesNothing(t, p, temp)
	p.ends(-1)
}

// A part that dies ends the demo with an error that names it.
func TestDemoWhoseProviderDies(t *testing.T) {
	t.Parallel()
	p, temp := startDemo(t)
	p.upTo("1 of 2: ")
	killed := false
	for _, name := range living(t, p.cmd.Process.Pid) {
		line, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || !strings.Contains(string(line), "\x00provider\x00") {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(name, "/proc/%d/stat", &pid); err != nil {
			t.Fatal(err)
		}
		killed = syscall.Kill(pid, syscall.SIGKILL) == nil
	}
	if !killed {
		t.Fatal("there is no provider")
	}
	p.warns("error: the demo could not be run: the provider is gone: signal: killed")
	p.ends(exitInternal)
	leavesNothing(t, p, temp)
}

// The gate of a demo, and of a demo of the user's own fleet, which states its limits, writes nothing into the user's event
// log. Its own log is removed with it.
func TestGateOfADemoLeavesTheUsersStateAlone(t *testing.T) {
	t.Parallel()
	answers := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(answers.Close)
	for name, args := range map[string][]string{"demo": nil, "scenario": {"--limits", "[{name: minute, size: 100/min}]"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			p := start(t, []string{"TMPDIR=" + temp, "XDG_STATE_HOME=" + filepath.Join(temp, "state")}, append([]string{"demo", "part", "gate", answers.URL}, args...)...)
			var told struct{ Listen []string }
			line, err := p.stdout.ReadString('\n')
			if err = errors.Join(err, json.Unmarshal([]byte(line), &told)); err != nil || len(told.Listen) == 0 {
				t.Fatalf("%q, %v", line, err)
			}
			resp, err := http.Post(told.Listen[0]+"/anthropic/v1/messages", "application/json", strings.NewReader(`{"model":"m","max_tokens":1}`))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
			p.stdin.Close()
			p.ends(exitOK)
			leavesNothing(t, p, temp)
		})
	}
}

func TestDemoOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	term := inTerminal(t, "demo", "--fast")
	if before := term.shows("1 of 2: "); !strings.HasPrefix(before, "One key with a limit of 120/min") {
		t.Errorf("it began with %q", before)
	}
	term.shows("\x1b[8A") // the second time they are drawn over the first
	before := term.shows("crawl")
	if !strings.Contains(before, "chat") || strings.Contains(before, "\x1b[3") {
		t.Errorf("it drew %q", before)
	}
	term.types("\x03")
	term.shows("error: interrupt while the demo ran")
	term.shows("job ended with 130")
}
