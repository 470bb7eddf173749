package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

var errEnded = errors.New("it ended by itself")

// contender is one way to handle a limit.
type contender struct {
	name  string
	about string
	open  func(ctx context.Context, s *setting) (*way, error)
}

// way is an opened contender: where the agents send their requests, and the programs in between.
type way struct {
	gate       string   // limiter inside the agents' programs: a file in node/gates
	bases      []string // addresses, which agents use in turn
	key        string
	priorities map[string]int // sent with each request, if the contender supports them
	running    []*process
}

// contenders returns all contenders, in the order in which they run.
func contenders() []contender {
	return []contender{
		{direct, "the client's own retries", inside("none")},
		{"file lock", "a JSON file of times behind a lock, by hand", inside("filelock")},
		{"Redis recipe", "a sorted set and a script, by hand", inside("recipe")},
		{"Bottleneck", "2.19.5, clustered through Redis", inside("bottleneck")},
		{"rate-limiter-flexible", "11.4.0 with its queue, Redis", inside("flexible")},
		{"LiteLLM", "proxy 1.106.2, one worker, usage-based routing, 3 retries", openLiteLLM},
		{"HiveMind", "proxy 0.2.0, as it comes", openHiveMind},
		{"Sluice, file", "sluice serve", openSluiceFile},
		{"Sluice, Redis", "two sluice serve on one Redis", openSluiceRedis},
	}
}

// inside returns a contender that limits inside the agents' programs.
func inside(gate string) func(context.Context, *setting) (*way, error) {
	return func(_ context.Context, s *setting) (*way, error) {
		return &way{gate: gate, key: apiKey, bases: []string{s.target + "/v1"}}, nil
	}
}

// openLiteLLM configures LiteLLM as its documentation says for a deployment with a limit on requests per minute.
func openLiteLLM(ctx context.Context, s *setting) (*way, error) {
	const master = "sk-compare-master-0123456789abcdef"
	config := map[string]any{
		"model_list": []any{map[string]any{
			"model_name":     model,
			"litellm_params": map[string]any{"model": "openai/" + model, "api_base": s.target + "/v1", "api_key": apiKey, "rpm": s.size * int64(time.Minute/window)},
		}},
		"router_settings": map[string]any{"routing_strategy": "usage-based-routing-v2", "num_retries": 3},
	}
	text, err := json.Marshal(config) // JSON is valid YAML
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "litellm.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := launch(s.dir, append(plainEnv(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_MASTER_KEY="+master, "NO_DOCS=True"),
		filepath.Join(s.python, "litellm"), "--config", file, "--host", "127.0.0.1", "--port", port, "--num_workers", "1", "--telemetry", "False")
	if err != nil {
		return nil, err
	}
	base := "http://127.0.0.1:" + port
	return p.way(ctx, base+"/health/liveliness", base+"/v1", master, 2*time.Minute)
}

func openHiveMind(ctx context.Context, s *setting) (*way, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := launch(s.dir, plainEnv(), filepath.Join(s.python, "hivemind"), "proxy", "--port", port, "--upstream", s.target, "--db", filepath.Join(s.dir, "hivemind.db"))
	if err != nil {
		return nil, err
	}
	base := "http://127.0.0.1:" + port
	return p.way(ctx, base+"/_health", base+"/v1", apiKey, time.Minute)
}

func openSluiceFile(ctx context.Context, s *setting) (*way, error) {
	return openSluice(ctx, s, "file:"+filepath.Join(s.dir, "state"), 1)
}

func openSluiceRedis(ctx context.Context, s *setting) (*way, error) {
	return openSluice(ctx, s, s.redisURL(), 2)
}

// openSluice starts daemons that share a store. Agents and classes come as headers.
func openSluice(ctx context.Context, s *setting, store string, daemons int) (*way, error) {
	file := filepath.Join(s.dir, "sluice.yaml")
	// The dialect is generic, because OpenAI's headers state a limit per minute, which this provider does not have.
	// Like all contenders, Sluice gets the limit in its configuration.
	text := fmt.Sprintf("store: %s\npresets: off\nresources:\n  llm:\n    provider: generic\n    upstream: %s\n    limits:\n      - {name: requests, size: %d/%s, burst: %[3]d}\n",
		store, s.target, s.size, window)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	w := &way{gate: "none", key: apiKey}
	for i := range daemons {
		port, err := freePort()
		if err != nil {
			w.close()
			return nil, err
		}
		home := filepath.Join(s.dir, fmt.Sprint("home", i))
		p, err := launch(s.dir, append(plainEnv(), "HOME="+home), s.sluice, "serve", "--config", file, "--listen", "127.0.0.1:"+port)
		if err != nil {
			w.close()
			return nil, err
		}
		base := "http://127.0.0.1:" + port
		one, err := p.way(ctx, base+"/readyz", base+"/llm/v1", apiKey, time.Minute)
		if err != nil {
			w.close()
			return nil, err
		}
		w.bases, w.running = append(w.bases, one.bases...), append(w.running, p)
	}
	return w, nil
}

// process is a program between the agents and the provider.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// launch starts a program in its own process group. Its output goes to a file.
func launch(dir string, env []string, program string, args ...string) (*process, error) {
	out, err := os.CreateTemp(dir, "log")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: out.Name(), ended: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// way waits until the program answers and returns it as a way.
func (p *process) way(ctx context.Context, health, base, key string, within time.Duration) (*way, error) {
	if err := answers(ctx, health, within, p.ended); err != nil {
		p.stop()
		text, _ := os.ReadFile(p.log)
		return nil, fmt.Errorf("%s does not answer: %w\n%s", filepath.Base(p.cmd.Path), err, tail(string(text)))
	}
	return &way{gate: "none", key: key, bases: []string{base}, running: []*process{p}}, nil
}

// stop ends the program and all processes of its group.
func (p *process) stop() {
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
	}
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

func (w *way) close() {
	var all sync.WaitGroup
	for _, p := range w.running {
		all.Go(p.stop)
	}
	all.Wait()
}

// freePort returns a port that no program listens on. If another program takes it first, the run fails with an error.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	return port, err
}

// plainEnv returns the environment without variables that would redirect a program, such as proxies.
func plainEnv() (env []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		upper := strings.ToUpper(name)
		if strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, "SLUICE_") || strings.HasPrefix(upper, "OPENAI_") {
			continue
		}
		env = append(env, v)
	}
	return env
}
