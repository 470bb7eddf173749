//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/sluicehttp"
)

// troubled is a provider that can be down, and notes the key that it got last.
type troubled struct {
	url  string
	down atomic.Int32 // status to answer with; 0: it is well
	key  atomic.Value
	dir  string // of state
	file string // configuration
}

func newTroubled(t *testing.T, config string) *troubled {
	t.Helper()
	m, err := mock.New(mock.Options{Provider: "anthropic", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := &troubled{dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.key.Store(r.Header.Get("X-Api-Key"))
		if code := p.down.Load(); code != 0 {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(int(code))
			return
		}
		m.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(m.Close)
	p.url, p.file = server.URL, filepath.Join(t.TempDir(), "sluice.yaml")
	text := strings.ReplaceAll(config, "UPSTREAM", server.URL)
	if err := os.WriteFile(p.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *troubled) env(more ...string) []string {
	return append([]string{"SLUICE_STORE=file:" + p.dir, "SLUICE_CONFIG=" + p.file, "XDG_STATE_HOME=" + p.dir, "ANTHROPIC_API_KEY=", "LETTERS_KEY="}, more...)
}

// sluice runs a command, which has to exit with a code, and returns what it prints.
func (p *troubled) sluice(t *testing.T, code int, env []string, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sluice", args...)
	cmd.Env = append(os.Environ(), p.env(env...)...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if e := cmd.Run(); e != nil && !errors.As(e, &exit) {
		t.Fatal(e)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("sluice %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &err)
	}
	return out.String(), err.String()
}

// giveUp makes a gate give up a request.
func (p *troubled) giveUp(t *testing.T, env []string, header ...string) {
	t.Helper()
	p.down.Store(500)
	defer p.down.Store(0)
	gate := start(t, p.env(env...), "serve", "--listen", "127.0.0.1:0")
	at, _, _ := strings.Cut(gate.tells("sluice: listening on "), ";")
	if code := sendTo(t, at+"/@web:p1/anthropic/v1/messages?beta=true", header...); code != 500 {
		t.Errorf("status %d", code)
	}
	gate.signal(syscall.SIGTERM)
	if _, err := io.ReadAll(gate.stderr); err != nil {
		t.Fatal(err)
	}
	gate.ends(0)
}

// onDisk returns the files of the state that contain a text.
func (p *troubled) onDisk(t *testing.T, text string) (in []string) {
	t.Helper()
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			in = append(in, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

const letterConfig = `
resources:
  anthropic: {provider: anthropic, upstream: "UPSTREAM", dead_letters: on}
retry: {attempts: 1}
`

func TestARequestThatWasGivenUpIsSentAgain(t *testing.T) {
	t.Parallel()
	p := newTroubled(t, letterConfig)
	p.giveUp(t, nil, "X-Other", theKey)
	if in := p.onDisk(t, theKey); len(in) > 0 {
		t.Error("the key is on disk: ", in)
	}
	in := p.onDisk(t, theBody)
	if len(in) != 1 || filepath.Ext(in[0]) != ".request" {
		t.Fatal("the body is in ", in)
	}
	if info, err := os.Stat(in[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	id := strings.TrimSuffix(filepath.Base(in[0]), ".request")

	list, _ := p.sluice(t, 0, nil, "dlq", "list", "--json")
	for _, want := range []string{`"kind": "request"`, `"method": "POST"`, `"path": "/v1/messages"`, `"status": 500`, `"agent": "web"`, `"body_bytes": `} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %s: %s", want, list)
		}
	}
	shown, _ := p.sluice(t, 0, nil, "dlq", "show", id)
	asJSON, _ := p.sluice(t, 0, nil, "dlq", "show", id, "--json")
	if all := list + shown + asJSON; strings.Contains(all, theBody) || strings.Contains(all, theKey) {
		t.Error("a body or a key is shown: ", all)
	}
	if !strings.Contains(shown, "POST /v1/messages?beta=true") || !strings.Contains(shown, "left out    X-Api-Key, X-Other") || !strings.Contains(shown, "status 500, error") {
		t.Error(shown)
	}
	if body, _ := p.sluice(t, 0, nil, "dlq", "show", id, "--body"); !strings.Contains(body, theBody) || !strings.HasPrefix(body, "{") {
		t.Error("its body: ", body)
	}

	// Not without a key; given up again it stays; with the key of now it succeeds, and is gone.
	if _, err := p.sluice(t, exitUsage, nil, "dlq", "retry", id); !strings.Contains(err, "ANTHROPIC_API_KEY is not set") {
		t.Error(err)
	}
	now := []string{"ANTHROPIC_API_KEY=the-key-of-now"}
	p.down.Store(500)
	if _, err := p.sluice(t, exitNotYet, now, "dlq", "retry", id); !strings.Contains(err, "given up again: status 500") {
		t.Error(err)
	}
	p.down.Store(401)
	p.sluice(t, exitRefused, now, "dlq", "retry", id)
	p.down.Store(0)
	if again, _ := p.sluice(t, 0, nil, "dlq", "list", "--json"); !strings.Contains(again, `"attempts": 3`) || strings.Count(again, `"id"`) != 1 {
		t.Error(again)
	}
	answer, _ := p.sluice(t, 0, now, "dlq", "retry", id, "--output", "-")
	if !strings.Contains(answer, `"output_tokens"`) || p.key.Load() != "the-key-of-now" {
		t.Errorf("sent with %q: %s", p.key.Load(), answer)
	}
	if list, _ := p.sluice(t, 0, nil, "dlq", "list"); !strings.Contains(list, "There are no dead letters") {
		t.Error(list)
	}
	if sent, _ := p.sluice(t, 0, nil, "status", "--json"); !strings.Contains(sent, `"sent": 4`) {
		t.Error("sent again it did not pass the gate: ", sent)
	}
	if in := append(p.onDisk(t, theBody), p.onDisk(t, "the-key-of-now")...); len(in) > 0 {
		t.Error("still on disk: ", in)
	}
}

// A program that calls Do keeps its dead letters where sluice dlq finds them.
func TestARequestThatDoGaveUpIsSentAgain(t *testing.T) {
	t.Parallel()
	p := newTroubled(t, letterConfig)
	list, err := deadletter.Open(filepath.Join(p.dir, "dead-letters"))
	if err != nil {
		t.Fatal(err)
	}
	letters := &sluicehttp.Letters{Keeper: deadletter.NewKeeper(list, nil)}
	g, err := sluice.Open(t.Context(), sluice.Config{
		Resources: map[string]sluice.Resource{"anthropic": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 10}}}}, Retry: retry.Policy{Attempts: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	body := `{"model":"claude-sonnet-4-5","max_tokens":20,"messages":[{"role":"user","content":"` + theBody + `"}]}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/messages", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", theKey)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	p.down.Store(500)
	err = letters.Do(t.Context(), g, sluice.Request{Resource: "anthropic", Agent: "web"}, r, func(context.Context, sluice.Ticket) (sluice.Answer, error) {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return sluice.Answer{}, err
		}
		_ = resp.Body.Close()
		return sluice.Answer{Status: resp.StatusCode, Verdict: sluice.VerdictError}, nil
	})
	if !errors.Is(err, sluice.ErrAttempts) {
		t.Fatal(err)
	}
	letters.Keeper.Flush()
	p.down.Store(0)
	if in := p.onDisk(t, theKey); len(in) > 0 {
		t.Error("the key is on disk: ", in)
	}
	if list, _ := p.sluice(t, 0, nil, "dlq", "list", "--json"); !strings.Contains(list, `"path": "/v1/messages"`) {
		t.Error(list)
	}
	answer, _ := p.sluice(t, 0, []string{"ANTHROPIC_API_KEY=the-key-of-now"}, "dlq", "retry", "--all", "--output", "-")
	if !strings.Contains(answer, `"output_tokens"`) || p.key.Load() != "the-key-of-now" {
		t.Errorf("sent with %q: %s", p.key.Load(), answer)
	}
	if in := p.onDisk(t, theBody); len(in) > 0 {
		t.Error("still on disk: ", in)
	}
}

func TestNothingIsKeptWhileDeadLettersAreOff(t *testing.T) {
	t.Parallel()
	p := newTroubled(t, strings.Replace(letterConfig, ", dead_letters: on", "", 1))
	p.giveUp(t, nil)
	if in := append(p.onDisk(t, theBody), p.onDisk(t, theKey)...); len(in) > 0 {
		t.Error("on disk: ", in)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "dead-letters")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("there is a list: ", err)
	}
}

func TestDeadLettersAreEncrypted(t *testing.T) {
	t.Parallel()
	p := newTroubled(t, letterConfig+"dead_letters: {key_env: LETTERS_KEY}\n")
	key := []string{"LETTERS_KEY=" + strings.Repeat("0123456789abcdef", 4), "ANTHROPIC_API_KEY=the-key-of-now"}
	wrong := []string{"LETTERS_KEY=" + strings.Repeat("fedcba9876543210", 4), "ANTHROPIC_API_KEY=the-key-of-now"}
	if _, err := p.sluice(t, exitConfig, nil, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(err, "the variable LETTERS_KEY is not set") {
		t.Error(err)
	}
	if _, err := p.sluice(t, exitConfig, []string{"LETTERS_KEY=short-secret"}, "serve", "--listen", "127.0.0.1:0"); !strings.Contains(err, "holds no key") || strings.Contains(err, "short-secret") {
		t.Error(err)
	}
	// One of each kind: a request, and a command that is to be tried again.
	p.giveUp(t, key)
	p.down.Store(429)
	p.sluice(t, exitNotYet, key, "run", "--no-gate", "--quiet", "--resource", "anthropic", "--attempts", "1", "--", "sluice", "ping", "anthropic")
	p.down.Store(0)
	for _, text := range []string{theBody, theKey, "v1/messages", "argv", "the-key-of-now"} {
		for _, in := range p.onDisk(t, text) {
			if strings.Contains(in, "dead-letters") {
				t.Errorf("%q is in %s", text, in)
			}
		}
	}
	if list, _ := p.sluice(t, 0, nil, "dlq", "list"); strings.Count(list, "(encrypted)") != 2 {
		t.Error(list)
	}
	if list, _ := p.sluice(t, 0, wrong, "dlq", "list", "--json"); strings.Count(list, "encrypted with another key") != 2 {
		t.Error(list)
	}
	if _, err := p.sluice(t, exitUnavailable, wrong, "dlq", "retry", "--all", "--quiet"); !strings.Contains(err, "cannot be decrypted") || !strings.Contains(err, "hint: set the variable that dead_letters.key_env names") {
		t.Error(err)
	}
	p.sluice(t, 0, key, "dlq", "retry", "--all", "--quiet")
	if list, _ := p.sluice(t, 0, key, "dlq", "list", "--json"); strings.Contains(list, `"id"`) {
		t.Error("not all have succeeded: ", list)
	}
}
