//go:build slow && (linux || darwin)

package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

const (
	window = 5 * time.Second
	most   = 20 // requests in a window
	each   = 30 // requests of each version
	within = 2 * time.Minute
)

// this is the command of this version, and previous that of the previous release.
var this, previous string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &this)) }

func build(t *testing.T, revision ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join("..", "..", "scripts", "previous"), revision...).Output()
	if err != nil {
		t.Fatalf("scripts/previous: %v %s", err, errorOf(err))
	}
	return strings.TrimSpace(string(out))
}

func errorOf(err error) string {
	if e, ok := err.(*exec.ExitError); ok {
		return string(e.Stderr)
	}
	return ""
}

// rig is a provider with an exact limit, and a configuration for gates before it.
type rig struct {
	*testing.T
	mock *mock.Server
	home string
	most int // requests in a window
}

func begin(t *testing.T) *rig {
	t.Helper()
	if previous == "" {
		previous = build(t)
	}
	return beginWith(t, most)
}

// beginWith is begin without the previous release, and with a number of requests in a window.
func beginWith(t *testing.T, most int) *rig {
	t.Helper()
	r := &rig{T: t, home: t.TempDir(), most: most}
	var err error
	r.mock, err = mock.New(mock.Options{Provider: "generic", Requests: sim.Rate{N: int64(most), Window: window}, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(r.mock)
	t.Cleanup(upstream.Close)
	t.Cleanup(r.mock.Close)
	text := fmt.Sprintf("presets: off\nresources:\n  api: {upstream: %s, limits: [{name: window, size: %d/%s}]}\n", upstream.URL, most, window)
	if err := os.WriteFile(filepath.Join(r.home, "sluice.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) command(binary, store string, args ...string) *exec.Cmd {
	cmd := proctest.Command(r.T, binary, args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "XDG_STATE_HOME=" + filepath.Join(r.home, "state"), "TMPDIR=" + os.TempDir(),
		"SLUICE_CONFIG=" + filepath.Join(r.home, "sluice.yaml"), "SLUICE_STORE=" + store,
	}
	return cmd
}

// daemon is a sluice serve that runs.
type daemon struct {
	*rig
	url    string
	cmd    *exec.Cmd
	stderr *strings.Builder
	using  sync.RWMutex // held by requests of a load
	ended  bool
}

// serve starts a daemon. It returns what a daemon says that does not start instead.
func (r *rig) serve(binary, store string, env ...string) (*daemon, string) {
	r.Helper()
	d := &daemon{rig: r, cmd: r.command(binary, store, "serve", "--listen", "127.0.0.1:0", "--json"), stderr: &strings.Builder{}}
	d.cmd.Stderr = d.stderr
	d.cmd.Env = append(d.cmd.Env, env...)
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	in := proctest.Reader(out)
	line, err := in.ReadBytes('\n')
	if err != nil || string(line) == "{\n" { // an error has several lines
		_, _ = io.Copy(io.Discard, in)
		err := d.cmd.Wait()
		return nil, fmt.Sprintf("%v\n%s", err, d.stderr)
	}
	r.Cleanup(d.stop)
	var said struct{ Listen []string }
	if err := json.Unmarshal(line, &said); err != nil || len(said.Listen) == 0 {
		r.Fatalf("sluice serve says %q", line)
	}
	d.url = said.Listen[0]
	return d, ""
}

// serveNext starts a daemon after those of another version have ended. If the formats differ it repairs what the daemon
// names, as docs/compatibility.md says. repaired reports whether it did.
func (r *rig) serveNext(binary, store string) (d *daemon, repaired bool) {
	r.Helper()
	for n := range 5 { // the resource, and pools of the gate itself
		d, said := r.serve(binary, store)
		if d != nil {
			return d, n > 0
		}
		r.foreign(said)
		_, command, _ := strings.Cut(said, "version is gone: sluice repair ")
		name, _, _ := strings.Cut(command, "\n")
		if name = strings.Trim(name, "' "); name == "" {
			r.Fatalf("the hint names nothing to repair: %s", said)
		}
		if out, err := r.command(binary, store, "repair", name, "--yes").CombinedOutput(); err != nil {
			r.Fatalf("sluice repair %s: %v %s", name, err, out)
		}
	}
	r.Fatal("repaired pools are still refused")
	return nil, false
}

// stop ends a daemon as an upgrade does.
func (d *daemon) stop() {
	d.using.Lock()
	defer d.using.Unlock()
	if d.ended {
		return
	}
	d.ended = true
	_ = d.cmd.Process.Signal(os.Interrupt)
	if err := d.cmd.Wait(); err != nil {
		d.Errorf("sluice serve: %v\n%s", err, d.stderr)
	}
}

// send sends requests through a daemon, all at once. All are let through in time.
func (d *daemon) send(agent string, n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(d.Context(), within)
			defer cancel()
			q, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/api/x", nil)
			if err != nil {
				d.Error(err)
				return
			}
			q.Header.Set("X-Agent-Id", agent)
			resp, err := http.DefaultClient.Do(q)
			if err != nil {
				d.Error(err)
				return
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusOK {
				d.Errorf("%s: %d %.300s", agent, resp.StatusCode, text)
			}
		})
	}
	all.Wait()
}

// judge looks at the provider's log.
func (r *rig) judge(want map[string]int64) {
	r.Helper()
	s := r.mock.Stats()
	r.Logf("the provider: %d arrived, %d refused, at most %d in %v, by agent %v", s.Arrived, s.Throttled, s.WorstWindow, window, s.ByAgent)
	if s.Throttled > 0 || s.WorstWindow > int64(r.most) {
		r.Errorf("%d refused, %d in %v where %d are allowed", s.Throttled, s.WorstWindow, window, r.most)
	}
	for agent, n := range want {
		if s.ByAgent[agent] != n {
			r.Errorf("%d requests of %s arrived, want %d", s.ByAgent[agent], agent, n)
		}
	}
}

// clear checks a refusal: it says that versions differ and what to do, and nothing was sent.
func (r *rig) clear(said string) {
	r.Helper()
	r.Logf("refused: %s", said)
	if !strings.Contains(said, "version") || !strings.Contains(said, "hint: ") {
		r.Errorf("the refusal does not say enough: %s", said)
	}
}

// foreign checks the refusal of a store that the other version has written to.
func (r *rig) foreign(said string) {
	r.Helper()
	r.clear(said)
	if !strings.HasPrefix(said, "exit status 69\n") {
		r.Errorf("a store of another version is refused otherwise than with 69: %s", said)
	}
}

// stores are those that two processes can share.
var stores = []struct {
	name string
	open func(r *rig) string
}{
	{"file", func(r *rig) string { return "file:" + filepath.Join(r.home, "shared") }},
	{"redis", func(r *rig) string { return redisrun.New(r.T).URL() + "?timeout=20s" }},
}

// The previous release and this version share a store, whichever comes first.
func TestBothVersionsOnOneStore(t *testing.T) {
	for _, s := range stores {
		for _, order := range []string{"previous first", "this first"} {
			t.Run(s.name+"/"+order, func(t *testing.T) {
				r := begin(t)
				store := s.open(r)
				first, second := previous, this
				if order == "this first" {
					first, second = this, previous
				}
				a, said := r.serve(first, store)
				if a == nil {
					t.Fatal(said)
				}
				a.send("first", 1)
				b, said := r.serve(second, store)
				if b == nil {
					r.foreign(said)
					a.send("first", each-1) // it goes on, as nothing of its state was touched
					r.judge(map[string]int64{"first": each})
					return
				}
				var both sync.WaitGroup
				both.Go(func() { a.send("first", each-1) })
				both.Go(func() { b.send("second", each) })
				both.Wait()
				r.judge(map[string]int64{"first": each, "second": each})
			})
		}
	}
}

// What is sent right after an upgrade, or after the way back, stays within the limit: pools of the same format keep what was
// counted, and a repaired one counts as used up.
func TestUpgradeAndBack(t *testing.T) {
	for _, s := range stores {
		t.Run(s.name, func(t *testing.T) {
			r := begin(t)
			store := s.open(r)
			sent := map[string]int64{}
			for i, binary := range []string{previous, this, previous, this} {
				d, _ := r.serveNext(binary, store)
				agent := fmt.Sprint("agent-", i)
				d.send(agent, most)
				sent[agent] = most
				d.stop()
			}
			r.judge(sent)
		})
	}
}

// A client of either version uses the store of a daemon of the other.
func TestClientAndDaemonOfDifferentVersions(t *testing.T) {
	for _, c := range []struct {
		name           string
		daemon, client *string
	}{{"previous client, this daemon", &this, &previous}, {"this client, previous daemon", &previous, &this}} {
		t.Run(c.name, func(t *testing.T) {
			r := begin(t)
			d, said := r.serve(*c.daemon, "file:"+filepath.Join(r.home, "shared"))
			if d == nil {
				t.Fatal(said)
			}
			far, said := r.serve(*c.client, d.url) // a gate on the store of the first
			if far == nil {
				r.clear(said)
				d.send("near", most)
				r.judge(map[string]int64{"near": most})
				return
			}
			var both sync.WaitGroup
			both.Go(func() { d.send("near", each) })
			both.Go(func() { far.send("far", each) })
			both.Wait()
			r.judge(map[string]int64{"near": each, "far": each})
			out, err := r.command(*c.client, d.url, "status", "--json").CombinedOutput()
			if err != nil || !strings.Contains(string(out), `"api"`) {
				t.Errorf("status: %v %.500s", err, out)
			}
		})
	}
}

// Each version adds to the log of the other and reports with it. What was sent before a repair is not in the report, because
// the pool has forgotten it.
func TestEventLogsOfBothVersions(t *testing.T) {
	r := begin(t)
	store := "file:" + filepath.Join(r.home, "shared")
	want := int64(0)
	for _, binary := range []string{previous, this} {
		d, repaired := r.serveNext(binary, store)
		if repaired {
			want = 0
		}
		d.send("a", 5)
		want += 5
		d.stop()
		for _, reader := range []string{this, previous} {
			out, err := r.command(reader, store, "report", "--json").Output()
			if reader != binary && strings.Contains(errorOf(err), "version of Sluice") {
				r.clear(errorOf(err))
				continue
			}
			var report struct {
				Resources []struct {
					Name  string
					Total struct {
						Sends int64 `json:"first_sends"`
					}
				}
			}
			if err != nil || json.Unmarshal(out, &report) != nil || len(report.Resources) == 0 {
				t.Fatalf("report: %v %s %.500s", err, errorOf(err), out)
			}
			if got := report.Resources[0].Total.Sends; got != want {
				t.Errorf("%s reads %d sends, want %d", filepath.Base(reader), got, want)
			}
		}
	}
}
