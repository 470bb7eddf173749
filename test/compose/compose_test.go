//go:build linux || darwin

package compose_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice/internal/built"
)

var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

const dir = "../../deploy/compose"

func read(t *testing.T, path string, into any) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return text
}

// service has the fields of a service that the file uses: another one is an error.
type service struct {
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	ReadOnly    bool              `yaml:"read_only"`
	Volumes     []string          `yaml:"volumes"`
	DependsOn   []string          `yaml:"depends_on"`
	Restart     string            `yaml:"restart"`
	Network     string            `yaml:"network_mode"`
	Ports       []string          `yaml:"ports"`
	Environment map[string]string `yaml:"environment"`
	Health      struct {
		Disable bool `yaml:"disable"`
	} `yaml:"healthcheck"`
}

// Files that the services mount exist, services that they need are there, and the commands of sluice are right.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	var file struct {
		Services map[string]service `yaml:"services"`
		Volumes  map[string]any     `yaml:"volumes"`
	}
	read(t, filepath.Join(dir, "compose.yaml"), &file)
	for _, name := range []string{"gate", "redis", "provider", "agent", "prometheus", "grafana"} {
		if _, ok := file.Services[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	for name, s := range file.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, named := file.Volumes[from]; named {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		needs := s.DependsOn
		if of, ok := strings.CutPrefix(s.Network, "service:"); ok {
			needs = append(slices.Clone(needs), of)
		}
		for _, other := range needs {
			if _, ok := file.Services[other]; !ok {
				t.Errorf("%s needs %s", name, other)
			}
		}
		if s.Image == "sluice" {
			sluice(t, append(slices.Clone(s.Command), "--help")...)
		}
	}
	sluice(t, "config", "check", "--config", filepath.Join(dir, "sluice.yaml"))
	var prometheus struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
		} `yaml:"global"`
		Rules []string `yaml:"rule_files"`
		Jobs  []struct {
			Name    string `yaml:"job_name"`
			Targets []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, filepath.Join(dir, "prometheus.yml"), &prometheus)
	if gate := file.Services["gate"].Command; len(prometheus.Jobs) != 1 || !slices.Contains(gate, prometheus.Jobs[0].Targets[0].Targets[0]) {
		t.Errorf("Prometheus asks %+v, the gate is started with %q", prometheus.Jobs, gate)
	}
	for _, rules := range prometheus.Rules {
		if !slices.ContainsFunc(file.Services["prometheus"].Volumes, func(v string) bool { return strings.Contains(v, "/etc/prometheus/"+rules) }) {
			t.Errorf("%s is not mounted", rules)
		}
	}
	for _, name := range []string{"datasource.yaml", "dashboards.yaml"} {
		read(t, filepath.Join(dir, "grafana", name), &map[string]any{})
	}
}

// sluice runs a command that has to succeed.
func sluice(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, sluiceBinary, args...)
	cmd.Env = built.Env(t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The action's inputs are those that it reads, its scripts are bash, and its gate starts and is where the variables say.
func TestAction(t *testing.T) {
	t.Parallel()
	type step struct {
		Name  string            `yaml:"name"`
		Shell string            `yaml:"shell"`
		Env   map[string]string `yaml:"env"`
		Run   string            `yaml:"run"`
	}
	var action struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Inputs      map[string]struct {
			Description string `yaml:"description"`
			Required    bool   `yaml:"required"`
			Default     string `yaml:"default"`
		} `yaml:"inputs"`
		Runs struct {
			Using string `yaml:"using"`
			Steps []step `yaml:"steps"`
		} `yaml:"runs"`
	}
	text := read(t, "../../deploy/github/action.yml", &action)
	if action.Runs.Using != "composite" || len(action.Runs.Steps) != 2 || action.Name == "" || action.Description == "" {
		t.Fatalf("%+v", action)
	}
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`\$\{\{ inputs\.(\w+) \}\}`).FindAllSubmatch(text, -1) {
		used[string(m[1])] = true
	}
	for name := range action.Inputs {
		if !used[name] {
			t.Errorf("the input %s is not read", name)
		}
		delete(used, name)
	}
	if len(used) > 0 {
		t.Errorf("there are no inputs %v", used)
	}
	for _, s := range action.Runs.Steps {
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") { // an expression in a script can be made to run something else
			t.Errorf("%+v", s)
		}
		check := exec.CommandContext(t.Context(), "bash", "-n")
		check.Stdin = strings.NewReader(s.Run)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", s.Name, err, out)
		}
	}

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Symlink(sluiceBinary, filepath.Join(home, "sluice")); err != nil {
		t.Fatal(err)
	}
	variables := filepath.Join(home, "env")
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", strings.ReplaceAll(action.Runs.Steps[1].Run, "127.0.0.1:7979", at))
	cmd.Env = append(built.Env(home, "SLUICE_STORE=file:"+filepath.Join(home, "store"), "CONFIG=", "AGENT=CI of main", "GITHUB_ENV="+variables, "RUNNER_TEMP="+home), "PATH="+home+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the gate goes on after the step
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
			for range 1000 { // its files are in a directory that is removed
				if c, err := net.Dial("tcp", at); err != nil { //nolint:noctx // loopback
					break
				} else {
					_ = c.Close()
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	set, err := os.ReadFile(variables)
	if err != nil || !bytes.Contains(set, []byte("OPENAI_BASE_URL=http://"+at+"/@CI-of-main/openai/v1\n")) || !bytes.Contains(set, []byte("SLUICE_URL=http://"+at+"\n")) {
		t.Errorf("%s %v", set, err)
	}
	resp, err := http.Get("http://" + at + "/healthz") //nolint:noctx // loopback
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
