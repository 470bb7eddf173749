package page

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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// world is a real gate in a process of its own, before a provider that a test controls.
type world struct {
	*testing.T
	bin, dir, at string
	provider     *httptest.Server
	status       atomic.Int32 // that the provider answers with
	redis        *redisrun.Server
	requests     sync.WaitGroup
}

// build makes the command, once for all rows.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-page")
	if err != nil {
		return "", err
	}
	built = dir
	bin := filepath.Join(dir, "sluice")
	cmd := exec.Command("go", "build", "-tags=grpcnotrace", "-o", bin, "./cmd/sluice")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// built is where the command is, to be removed at the end.
var built string

// newWorld makes one with a limit of two requests, for a window such as min.
func newWorld(t *testing.T, onRedis bool, window string) *world {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, bin: bin, dir: t.TempDir()}
	w.status.Store(http.StatusOK)
	w.provider = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		status := int(w.status.Load())
		if status == http.StatusTooManyRequests {
			rw.Header().Set("Retry-After", "3600")
		}
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, "{}")
	}))
	t.Cleanup(w.provider.Close)
	store := "file:" + filepath.Join(w.dir, "store")
	if onRedis {
		w.redis = redisrun.New(t)
		store = w.redis.URL()
	}
	file := filepath.Join(w.dir, "states.yaml")
	text := "presets: \"off\"\nstore: \"" + store + "\"\nresources: {api: {upstream: \"" + w.provider.URL + "\", client_deadline: 2h, limits: [{name: only, size: 2/" + window + "}]}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.serve(file)
	return w
}

// environ has nothing of who runs the test.
func (w *world) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "XDG_STATE_HOME=" + filepath.Join(w.dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(w.dir, "config")}
}

// serve starts the daemon, and waits until it listens.
func (w *world) serve(file string) {
	w.Helper()
	said, err := os.Create(filepath.Join(w.dir, "said"))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = said.Close() })
	proctest.DefaultSignals()
	cmd := exec.Command(w.bin, "serve", "--config", file, "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Stdout, cmd.Stderr = w.environ(), said, said
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { // requests that are held end with it
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = proctest.Wait(cmd)
		w.requests.Wait()
	})
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	soon(ctx, w.T, "it listens", func() bool {
		text, err := os.ReadFile(said.Name())
		_, after, found := strings.Cut(string(text), "listening on ")
		var more bool
		w.at, _, more = strings.Cut(after, ";")
		return err == nil && found && more
	})
}

// ask runs a command against the daemon.
func (w *world) ask(args ...string) (text string, code int) {
	w.Helper()
	cmd := proctest.Command(w.T, w.bin, append(args, "--store", w.at)...)
	cmd.Env = w.environ()
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// sluice runs one that succeeds.
func (w *world) sluice(args ...string) {
	w.Helper()
	if out, code := w.ask(args...); code != 0 {
		w.Fatalf("sluice %v ends with %d\n%s", args, code, out)
	}
}

// send sends a request through the gate, and waits for its answer.
func (w *world) send() {
	resp, err := http.Post(w.at+"/@web/api/work", "application/json", strings.NewReader("{}"))
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// hold sends one that is held.
func (w *world) hold() { w.requests.Go(w.send) }

func (w *world) get(path string) string {
	resp, err := http.Get(w.at + path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// faces are what four who ask at the same time are told.
type faces struct {
	command, api, page, metrics string
	code                        int // that the command ends with
}

// look asks them all.
func (w *world) look(b *tab) faces {
	w.Helper()
	var f faces
	f.command, f.code = w.ask("status")
	f.api = w.get("/v1/status")
	f.page = b.text(`JSON.stringify({
  state: ` + apiRow + `?.dataset.state ?? '', word: ` + apiRow + `?.querySelector('.state .word').textContent ?? '',
  red: (() => { const e = ` + apiRow + `?.querySelector('.state'); if (!e) return false; const p = document.createElement('i'); p.style.color = 'var(--failing)'; e.append(p); const is = getComputedStyle(e).color === getComputedStyle(p).color; p.remove(); return is; })(),
  headline: document.getElementById('headline').textContent.replace(/[\u2068\u2069]/g, ''), title: document.title,
})`)
	f.metrics = w.get("/metrics")
	return f
}

const apiRow = `[...document.querySelectorAll('tbody.resource')].find(c => c.querySelector('.row-button').textContent === 'api')`

// wrong says what is not as it should be: the same state everywhere, and its words. It is empty if all agree.
func (f *faces) wrong(state, words string) string {
	calm := state == inspect.StateIdle || state == inspect.StateFlowing
	var api inspect.Status
	if err := json.Unmarshal([]byte(f.api), &api); err != nil || len(api.Resources) != 1 || api.Resources[0].State != state || !strings.Contains(api.Resources[0].Reason, words) {
		return "GET /v1/status says " + f.api
	}
	line, told := "api  "+state, words
	switch {
	case state == inspect.StateIdle:
		line = "idle: api"
	case api.Resources[0].Outage != nil: // the command asks the daemon, and adds for how long
		told = "out of reach"
	}
	if f.code != 0 || !strings.Contains(f.command, line) || !calm && !strings.Contains(f.command, told) {
		return fmt.Sprintf("sluice status ends with %d and prints %s", f.code, f.command)
	}
	var page struct {
		State, Word, Headline, Title string
		Red                          bool
	}
	if err := json.Unmarshal([]byte(f.page), &page); err != nil || page.State != state && state != inspect.StateIdle || page.Red != (state == inspect.StateFailing) {
		return "the page says " + f.page
	}
	switch { // unused resources are folded
	case state == inspect.StateIdle:
		if !strings.Contains(page.Headline, "No request yet. 1 resource is ready.") {
			return "the page says " + f.page
		}
	case page.Word != state, !strings.Contains(page.Headline, words), calm != (page.Title == "Sluice"), !calm && !strings.HasPrefix(page.Title, state):
		return "the page says " + f.page
	}
	for _, s := range inspect.States() {
		n := 0
		if s == state {
			n = 1
		}
		if line := fmt.Sprintf("sluice_resource_state{resource=\"api\",state=%q} %d\n", s, n); !strings.Contains(f.metrics, line) {
			return "the metrics do not have " + line
		}
	}
	return ""
}

// Every state is told by `sluice status`, GET /v1/status, the page in a browser and /metrics at the same time, in the same words. Only
// failing is red. Without the store a command shows what the daemon knows.
func TestEveryStateOnEveryFace(t *testing.T) {
	for _, c := range []struct {
		name, state, words string
		redis              bool
		drive              func(w *world)
		again              func(w *world) // before each look
	}{
		{"idle", inspect.StateIdle, "no request was sent yet", false, func(*world) {}, nil},
		{"flowing", inspect.StateFlowing, "requests pass without waiting", false, func(w *world) { w.send() }, nil},
		{"queueing", inspect.StateQueueing, "1 request waits: the limit only is full (2 of 2 used)", false, func(w *world) {
			w.send()
			w.send()
			w.hold()
		}, nil},
		{"refusing", inspect.StateQueueing, "the limit only is full (2 of 2 used): requests that need it wait or are refused", false, func(w *world) {
			w.send()
			w.send()
		}, func(w *world) { w.ask("acquire", "api", "--agent", "hasty", "--wait", "0") }},
		{"paused by a person", inspect.StatePaused, "maintenance", false, func(w *world) {
			w.send()
			w.sluice("pause", "api", "--for", "1h", "--reason", "maintenance")
		}, nil},
		{"paused by a 429", inspect.StatePaused, "status 429", false, func(w *world) {
			w.status.Store(http.StatusTooManyRequests)
			w.hold()
		}, nil},
		{"billing stop", inspect.StatePaused, "billing stop: status 402; the provider refuses requests until you add credit or raise the limit there", false, func(w *world) {
			w.status.Store(http.StatusPaymentRequired)
			w.send()
		}, nil},
		{"store away", inspect.StateDegraded, "the store is out of reach", true, func(w *world) {
			w.send()
			if err := w.redis.Kill(); err != nil {
				w.Fatal(err)
			}
		}, nil},
		{"memory lost", inspect.StateDegraded, "lost its memory; holding requests for one window", true, func(w *world) {
			w.send()
			if _, err := w.redis.Do(w.Context(), "FLUSHALL"); err != nil {
				w.Fatal(err)
			}
			w.hold()
		}, nil},
		{"failing", inspect.StateFailing, "connection refused by 127.0.0.1:", false, func(w *world) {
			w.provider.Close()
			w.send()
		}, nil},
		{"failing with 5xx", inspect.StateFailing, "sends failed: status 500", false, func(w *world) {
			for range 5 {
				w.sluice("observe", "api", "--status", "500")
			}
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			window := "h"
			if c.redis {
				window = "min" // lost memory holds requests for one window, if that is short
			}
			w := newWorld(t, c.redis, window)
			b := (&rig{T: t, url: w.at}).open()
			b.until(live)
			c.drive(w)
			wrong := ""
			for deadline := time.Now().Add(patience / 2); time.Now().Before(deadline); {
				if c.again != nil {
					c.again(w)
				}
				f := w.look(b)
				if wrong = f.wrong(c.state, c.words); wrong == "" {
					return
				}
				select {
				case <-time.After(100 * time.Millisecond):
				case <-t.Context().Done():
				}
			}
			t.Errorf("want %s: %s everywhere; %s", c.state, c.words, wrong)
		})
	}
}

// A calm resource names what is used up, also if that has no end, such as a budget without a period.
func TestWhatIsUsedUpIsNamed(t *testing.T) {
	now := time.Now().Truncate(time.Second).Add(-time.Minute)
	a, o, g := everyday(now)
	o.State, o.Reason, o.UsedUp = inspect.StateIdle, "no request was sent in the last minute; the budget all is used up", true
	s := scene{now: now, status: inspect.Status{Resources: []inspect.ResourceStatus{a, o, g}}, recent: requests(now), past: history(now, work(), fleet, nil)}
	r := begin(t, plain)
	r.fakes, r.date = s.answer, func() time.Time { return s.now }
	b := r.open()
	b.until(live)
	says(b, []string{"openai is idle: " + o.Reason, "The other 2 resources flow"})
}
