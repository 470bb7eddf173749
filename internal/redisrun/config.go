package redisrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const configFile = "redis.conf"

// ErrMissing is returned if no redis-server is installed.
var ErrMissing = errors.New("redis-server is not installed: run `make test`, or scripts/need-redis alone, which installs it")

// findBinary returns the server to start: $SLUICE_REDIS_SERVER, else redis-server,
// else valkey-server.
func findBinary() (string, error) {
	if name := os.Getenv("SLUICE_REDIS_SERVER"); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return "", fmt.Errorf("SLUICE_REDIS_SERVER: %w", err)
		}
		return filepath.Abs(path)
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", ErrMissing
}

// ours are the directives that this package sets. With other values it could not reach or stop the server.
var ours = []string{"port", "tls-port", "dir", "daemonize", "logfile", "supervised"}

func checkLines(lines []string) error {
	for _, line := range lines {
		name := directive(line)
		switch {
		case strings.ContainsAny(line, "\r\n"):
			return fmt.Errorf("a line of the configuration that begins with %q holds a line break: give each line by itself", name)
		case slices.Contains(ours, name):
			return fmt.Errorf("the configuration line %q is not yours to set: use Options", name)
		}
	}
	return nil
}

func directive(line string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return strings.ToLower(name)
}

// passwordIn returns the password that the last requirepass of the lines sets.
func passwordIn(lines []string) string {
	password := ""
	for _, line := range lines {
		if directive(line) == "requirepass" {
			_, password, _ = strings.Cut(strings.TrimSpace(line), " ")
			password = strings.Trim(strings.TrimSpace(password), `"'`)
		}
	}
	return password
}

// config returns the text of the configuration file. Its directory is the process's own, so only the paths of
// certificates need quoting.
func (s *Server) config() (string, error) {
	lines := []string{
		fmt.Sprintf("port %d", s.port),
		"bind " + loopback,
		"dir .",
		"daemonize no",
		`logfile ""`,
	}
	if !s.opts.sentinel {
		lines = append(lines,
			`save ""`,
			"appendonly no",
			"repl-diskless-sync-delay 0", // sync a replica now, not in 5 s
		)
	}
	if c := s.opts.TLS; c != nil {
		lines = append(lines, fmt.Sprintf("tls-port %d", s.tlsPort))
		for _, file := range [][2]string{{"tls-cert-file", c.Cert}, {"tls-key-file", c.Key}, {"tls-ca-cert-file", c.CA}} {
			path, err := filepath.Abs(file[1])
			if err != nil {
				return "", err
			}
			lines = append(lines, file[0]+" "+quote(path))
		}
	}
	return strings.Join(append(lines, s.opts.Lines...), "\n") + "\n", nil
}

func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// secrets are directives whose values must not be shown. Redis quotes a line of its configuration that it cannot
// parse.
var secrets = []string{"requirepass", "masterauth", "user", "sentinel", "tls-key-file-pass", "tls-client-key-file-pass"}

// tail returns the end of a log from an offset on. It removes secrets in quoted lines of the configuration.
func tail(path string, from int64) string {
	const most = 2048
	file, err := os.Open(path)
	if err != nil {
		return "(no log)"
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "(no log)"
	}
	from = max(from, info.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(file, from, most))
	if err != nil || len(text) == 0 {
		return "(nothing)"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i, line := range lines {
		if quoted, ok := strings.CutPrefix(line, ">>> '"); ok && slices.Contains(secrets, directive(quoted)) {
			lines[i] = ">>> '" + directive(quoted) + " ...'"
		}
	}
	return strings.Join(lines, "\n")
}
