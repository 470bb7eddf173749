//go:build linux

package matrix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/proctest"
)

// sluiceBinary is what is tested.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

// setup is a client that calls one provider.
type setup struct {
	name     string   // for people
	client   string   // its entry in the table of clients, empty if it calls through libraries of the table
	provider string   // that it calls
	model    string   // that it asks for
	args     []string // of its program; nil: those of the table's try
	env      []string // further variables; {key} becomes the key
	// files of its home directory, by name.
	files map[string]string
	agent bool // it answers one prompt and ends
	whole bool // it streams nothing
	// trust is the variable by which its users name a private authority.
	trust string
	// want is what it prints if the model does not write the answer.
	want string
	// setting says that sluice serve is reached by the client's own settings, with {gate} for the provider's address there.
	setting *setting
}

// setting is how a client is configured for a base URL.
type setting struct {
	env   []string
	files map[string]string
}

// tool is an installed client.
type tool struct {
	argv []string // without the arguments of the set-up
	dir  string   // to run in; empty: the home directory
	path string   // directories of programs that it needs
}

// kind is a way of running a client.
type kind string

const (
	inRun       kind = "run"           // two processes of sluice run, limits are stated
	inRunBlind  kind = "unknown"       // two processes of sluice run, limits are stated nowhere
	inServe     kind = "serve"         // sluice serve, as the table of clients says
	inHeld      kind = "held"          // sluice run, and the provider is paused for holdFor
	inCompany   kind = "company proxy" // sluice run, HTTPS_PROXY alone leads out
	inPrivateCA kind = "private CA"    // sluice run, a variable names the authority of the provider's certificate
)

const (
	// holdFor is longer than keep_alive, and shorter than the patience of every client.
	holdFor = 40 * time.Second
	// callsAtOnce is how many calls of each kind a program with a library makes: two programs make more than the provider allows.
	callsAtOnce = 3
	// patience bounds a program on a busy machine.
	patience = 8 * time.Minute
	// settleWithin is how long the gate may take to count what a client has left open.
	settleWithin = 10 * time.Second
	// key is what every client sends. Nobody has it.
	key = "sk-matrix-0000000000000000000000000000000000000000"
)

// perWindow is how many requests the provider allows in any window of five seconds.
func (s *setup) perWindow() int64 {
	if s.agent {
		return 2 // two processes make two calls or more
	}
	return 10
}

// outcome is what became of a set-up in one way.
type outcome struct {
	calls, refused int64
	tokens         string // why the counts do not agree
	wrong          []string
}

func (o *outcome) bad(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// bench is one set-up in one way.
type bench struct {
	*testing.T
	*setup
	tool  *tool
	kind  kind
	world *world
	home  string // of sluice
	env   []string
}

// play runs a set-up in one way.
func (s *setup) play(t *testing.T, tool *tool, k kind) outcome {
	t.Helper()
	b := &bench{T: t, setup: s, tool: tool, kind: k, home: t.TempDir()}
	b.world = newWorld(t, s.provider, s.perWindow(), k == inRunBlind)
	b.configure()
	n := 1
	if k == inRun || k == inRunBlind {
		n = 2
	}
	var o outcome
	outs := make([]string, n)
	problems := make([]error, n)
	var all sync.WaitGroup
	if k == inHeld {
		b.sluice("pause", s.provider, "--for", "4m") // resume ends it sooner; what is known to last longer than client_deadline is refused
		all.Go(b.resume)
	}
	more, files := []string(nil), s.files
	if k == inServe {
		more, files = b.serve()
	}
	for i := range n {
		all.Go(func() { outs[i], problems[i] = b.run(more, files) })
	}
	all.Wait()
	for i := range n {
		if problems[i] != nil {
			o.bad("%v", problems[i])
		} else if err := b.check(outs[i]); err != nil {
			o.bad("%v", err)
		}
	}
	b.judge(&o)
	return o
}

// configure writes the configuration of the gate.
func (b *bench) configure() {
	b.Helper()
	resource := "provider: " + b.provider
	switch {
	case b.kind == inCompany && b.provider != "bedrock": // which has a host for each region
	case b.kind == inCompany:
		resource += ", upstream: 'https://" + b.world.host + "'"
	case b.kind == inPrivateCA:
		resource += ", upstream: '" + b.world.tls.URL + "'"
	default:
		resource += ", upstream: '" + b.world.plain.URL + "'"
	}
	if b.kind != inRunBlind && !b.world.states {
		resource += fmt.Sprintf(", limits: [{name: strict, size: %d/5s, per: [model]}]", b.perWindow())
	}
	file := filepath.Join(b.home, "sluice.yaml")
	b.write(file, fmt.Sprintf("store: 'file:%s'\nresources:\n  %s: {%s}\n", filepath.Join(b.home, "state"), b.provider, resource))
	b.env = built.Env(b.home, "SLUICE_CONFIG="+file)
}

func (b *bench) write(file, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// sluice runs a command of ours and returns what it prints.
func (b *bench) sluice(args ...string) []byte {
	b.Helper()
	cmd := proctest.Command(b.T, sluiceBinary, args...)
	cmd.Env = b.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Errorf("sluice %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// resource is what the gate tells of the provider.
type resource struct {
	Name    string
	Waiting map[string]int // by class
	Callers []struct{ Units map[string]int64 }
}

// told returns what a command tells of the provider.
func (b *bench) told(command string) resource {
	b.Helper()
	var all struct{ Resources []resource }
	if err := json.Unmarshal(b.sluice(command, "--json"), &all); err != nil {
		b.Errorf("%s: %v", command, err)
	}
	for _, r := range all.Resources {
		if r.Name == b.provider {
			return r
		}
	}
	return resource{}
}

// resume ends the pause when a call has been held for long enough.
func (b *bench) resume() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(patience); len(b.told("status").Waiting) == 0 && time.Now().Before(end) && !b.Failed(); {
		<-tick.C
	}
	<-time.After(holdFor)
	b.sluice("resume", b.provider)
}

// run runs the client's program to its end, under sluice run or beside sluice serve, and returns what it prints.
func (b *bench) run(more []string, files map[string]string) (stdout string, err error) {
	home := b.TempDir()
	for name, text := range files {
		b.write(filepath.Join(home, name), text)
	}
	argv := slices.Concat(b.tool.argv, b.arguments())
	if b.kind != inServe {
		argv = append([]string{sluiceBinary, "run", "--"}, argv...)
	}
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = home
	if b.tool.dir != "" {
		cmd.Dir = b.tool.dir
	}
	cmd.Env = append(b.environment(home), more...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left running; usually nothing
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("%s: %w\n%s", b.name, err, tail(out.String()+said.String()))
	}
	for _, line := range []string{"went past the gate", "no call passed the gate"} {
		if b.kind != inServe && strings.Contains(said.String(), line) {
			return "", fmt.Errorf("sluice run says\n%s", tail(said.String()))
		}
	}
	if os.Getenv("CLIENTS_VERBOSE") != "" {
		b.Logf("%s\n%s", tail(out.String()), tail(said.String()))
	}
	return out.String(), nil
}

// tail returns the end of a text.
func tail(text string) string { return text[max(0, len(text)-2500):] }

// arguments are those of the client's program.
func (b *bench) arguments() []string {
	if b.args == nil {
		return b.entry().Try.Args
	}
	return b.args
}

// entry is the client in the table, or an empty one.
func (b *bench) entry() *clients.Client {
	if c := clients.Builtin().Find(b.client); c != nil {
		return c
	}
	return &clients.Client{}
}

// keyOf are the variables with the key of a provider.
var keyOf = map[string][]string{
	"anthropic": {"ANTHROPIC_API_KEY"}, "openai": {"OPENAI_API_KEY"}, "gemini": {"GEMINI_API_KEY"}, "groq": {"GROQ_API_KEY"},
	"mistral": {"MISTRAL_API_KEY"}, "xai": {"XAI_API_KEY"}, "cohere": {"CO_API_KEY", "COHERE_API_KEY"},
	"bedrock": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}, "github": {"GITHUB_TOKEN"},
}

// environment returns the variables of the client's program.
func (b *bench) environment(home string) []string {
	calls := callsAtOnce
	if b.kind == inHeld {
		calls = 1
	}
	env := []string{
		"PATH=" + b.tool.path + string(os.PathListSeparator) + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1", "DO_NOT_TRACK=1",
		"ASK_PROVIDER=" + b.provider, "ASK_MODEL=" + b.model, fmt.Sprint("ASK_CALLS=", calls), "AWS_DEFAULT_REGION=us-east-1",
	}
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"} {
		env = append(env, name+"="+home)
	}
	for _, name := range keyOf[b.provider] {
		env = append(env, name+"="+key)
	}
	env = append(env, b.env[len(built.Env(b.home)):]...)
	if b.args == nil {
		for _, name := range slices.Sorted(maps.Keys(b.entry().Try.Env)) {
			env = append(env, name+"="+b.entry().Try.Env[name])
		}
	}
	env = append(env, b.setup.env...)
	for i := range env {
		env[i] = strings.ReplaceAll(env[i], "{key}", key)
	}
	switch b.kind {
	case inCompany:
		env = append(env, "HTTPS_PROXY="+b.world.company.address(), "SSL_CERT_FILE="+b.world.trusted)
	case inPrivateCA:
		env = append(env, b.trust+"="+b.world.trusted)
		if b.trust == "SSL_CERT_DIR" {
			env[len(env)-1] = b.trust + "=" + filepath.Dir(b.world.trusted)
		}
	}
	return env
}

// judge compares what the provider has seen with what the gate has counted.
func (b *bench) judge(o *outcome) {
	b.Helper()
	var theirs, ours tokens
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(settleWithin); ; <-tick.C { // some clients end before their connections do
		o.calls, o.refused, theirs = b.world.seen()
		ours = tokens{}
		for _, c := range b.told("report").Callers {
			ours.in += c.Units["input_tokens"] + c.Units["cache_read_tokens"] + c.Units["cache_write_tokens"]
			ours.out += c.Units["output_tokens"]
		}
		if ours == theirs || time.Now().After(end) {
			break
		}
	}
	if ours != theirs {
		o.tokens = fmt.Sprintf("the gate counts %d and %d tokens, the provider %d and %d", ours.in, ours.out, theirs.in, theirs.out)
		o.bad("%s", o.tokens)
	}
	if o.calls == 0 {
		o.bad("no call reached the provider")
	}
	if o.refused > 0 && b.kind != inRunBlind {
		o.bad("the provider refused %d calls, though it states its limits", o.refused)
	}
	if len(o.wrong) > 0 {
		if strange := b.world.strange(); len(strange) > 0 {
			o.bad("the provider also had %s", strings.Join(strange, ", "))
		}
	}
}
