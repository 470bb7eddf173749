//go:build linux

package canary_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

// sluiceBinary is what is run.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

var watched = sync.OnceValue(func() error { return built.Watch("clients") })

// rig collects everything that is said, and has a directory for everything that is written.
type rig struct {
	*testing.T
	dir    string // searched
	config string // not searched: people write secrets there
	env    []string

	mu   sync.Mutex
	said map[string][]byte // by who said it
}

func newRig(t *testing.T, config string, env ...string) *rig {
	t.Helper()
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, dir: t.TempDir(), config: filepath.Join(t.TempDir(), "sluice.yaml"), said: map[string][]byte{}}
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(r.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(r.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(r.dir, "home"), "XDG_STATE_HOME=" + filepath.Join(r.dir, "xdg"), "TMPDIR=" + filepath.Join(r.dir, "tmp"), "SLUICE_CONFIG=" + r.config,
	}, env...)
	return r
}

// say keeps a text for the search.
func (r *rig) say(who string, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[who] = append(r.said[who], text...)
}

// command runs sluice to its end, wants an exit code and keeps what it prints.
func (r *rig) command(exit int, stdin string, args ...string) string {
	r.Helper()
	cmd := proctest.Command(r.T, sluiceBinary, args...)
	cmd.Env, cmd.Stdin = r.env, strings.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	name := "sluice " + forms.ReplaceAllString(strings.Join(args, " "), "SECRET")
	var ended *exec.ExitError
	if code := cmd.ProcessState.ExitCode(); code != exit || err != nil && !errors.As(err, &ended) {
		r.Errorf("%s exits with %d, want %d: %v\n%s%s", name, code, exit, err, out.Bytes(), said.Bytes())
	}
	r.say(name, out.Bytes())
	r.say(name, said.Bytes())
	return out.String()
}

// served is what sluice serve --json says.
type served struct {
	Listen  []string
	Forward string
}

// daemon is a sluice serve that runs. Its output is searched.
type daemon struct {
	served
	cmd *exec.Cmd
	log *logged
	out *bytes.Buffer
	eof chan struct{}
}

// logged is a log that several goroutines use.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve starts sluice serve with a full log.
func (r *rig) serve(args ...string) *daemon {
	r.Helper()
	d := &daemon{log: &logged{}, out: &bytes.Buffer{}, eof: make(chan struct{})}
	d.cmd = exec.Command(sluiceBinary, append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--log", "json", "--verbose", "--log-requests"}, args...)...)
	d.cmd.Env, d.cmd.Stderr = r.env, d.log
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = d.cmd.Process.Kill() })
	in := proctest.Reader(stdout)
	if err := json.NewDecoder(io.TeeReader(in, d.out)).Decode(&d.served); err != nil || len(d.Listen) == 0 {
		r.Fatalf("serve says %q: %v\n%s", d.out, err, d.log)
	}
	go func() {
		defer close(d.eof)
		_, _ = io.Copy(d.out, stdout) // until it ends
	}()
	return d
}

// end ends a daemon by a signal and keeps its output.
func (r *rig) end(d *daemon, sig syscall.Signal) {
	r.Helper()
	_ = d.cmd.Process.Signal(sig)
	<-d.eof
	err := proctest.Wait(d.cmd)
	if sig == syscall.SIGTERM && err != nil {
		r.Errorf("serve ends with %v\n%s", err, d.log)
	}
	r.say("the log of serve", []byte(d.log.String()))
	r.say("the output of serve", d.out.Bytes())
}

// search looks for secrets in everything that was said and written. It wants so many files at least.
func (r *rig) search(files int) {
	r.Helper()
	for who, text := range r.said {
		for _, f := range find(text) {
			at := bytes.Index(text, []byte(f))
			r.Errorf("%s says %s: ...%q", who, f, text[max(at-100, 0):min(at+60, len(text))])
		}
	}
	found, n := findIn(r.T, r.dir)
	for name, in := range found {
		r.Errorf("%s holds %q", name, in)
	}
	if n < files {
		r.Errorf("only %d files were searched", n)
	}
}

// keyed is an error text of a provider that repeats the key.
var keyed = `{"type":"error","error":{"type":"authentication_error","message":"Incorrect API key provided: ` + planted("ErrorText") + `"}}`

// answers are the ways in which a provider answers, by the first part of the path. Each holds secrets.
var answers = map[string]http.HandlerFunc{
	"fine": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, `{"model":"claude-sonnet-4-5","usage":{"input_tokens":3,"output_tokens":3},"text":"`+planted("Answer")+`"}`)
	},
	"unauthorized": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+planted("Realm")+`"`)
		answer(w, 401, keyed)
	},
	"throttled": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", planted("RetryAfter"))
		w.Header().Set("anthropic-ratelimit-requests-remaining", planted("Remaining"))
		answer(w, 429, keyed)
	},
	"failing": func(w http.ResponseWriter, _ *http.Request) { answer(w, 500, keyed) },
	"garbled": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, `{"usage":{"input_tokens":"`+planted("Usage")+`"`)
	},
	"redirects": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://me:"+planted("Location")+"@127.0.0.1:1/?key="+planted("LocationQuery"))
		answer(w, 302, "")
	},
	"streams": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Content-Length", "10000") // it ends early
		_, _ = io.WriteString(w, "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\""+planted("Event")+"\"}}\n\ndata: "+planted("Data")+"\n\n")
	},
	"cut": func(w http.ResponseWriter, _ *http.Request) { raw(w, "") },
	"no-key": func(w http.ResponseWriter, _ *http.Request) {
		raw(w, "HTTP/1.1 200 OK\r\nBad "+planted("BadHeader")+"\r\n\r\n")
	},
	"no-http": func(w http.ResponseWriter, _ *http.Request) { raw(w, planted("NoHTTP")+" is the key\r\n\r\n") },
	"bad-length": func(w http.ResponseWriter, _ *http.Request) {
		raw(w, "HTTP/1.1 200 OK\r\nContent-Length: "+planted("Length")+"\r\n\r\n")
	},
	"mute": func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() },
}

// own are answers on which the gate itself answers the client.
var own = []string{"cut", "no-key", "no-http", "bad-length", "gone", "plain"}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Set-Cookie", "s="+planted("SetCookie"))
	w.Header().Set("X-Anything", planted("AnswerHeader"))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// raw answers with bytes, and closes.
func raw(w http.ResponseWriter, text string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(c, text)
	_ = c.Close()
}

// upstream is a provider with all answers.
type upstream struct {
	*httptest.Server
	muted chan struct{} // gets a request that it does not answer
}

func provider(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{muted: make(chan struct{}, 100)}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		name, _, _ := strings.Cut(q.URL.Path[1:], "/")
		h := answers[name]
		if h == nil {
			answer(w, 404, keyed)
			return
		}
		if name == "mute" {
			select {
			case u.muted <- struct{}{}:
			default:
			}
		}
		h(w, q)
	}))
	t.Cleanup(u.Close)
	return u
}

// closedPort returns an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
