//go:build slow && linux

package install

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

func TestUnitIsSoundAndHardened(t *testing.T) {
	unit := filepath.Join(root(t), "deploy", "systemd", "sluice.service")
	said := do(t, ".", "systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
	if !strings.Contains(said, "Overall exposure level") {
		t.Errorf("it says\n%s", said)
	}
}

// debian returns the name of the image of a bare Debian.
func debian(t *testing.T) string {
	t.Helper()
	said := strings.Split(strings.TrimSpace(do(t, root(t), "scripts/need-debian")), "\n")
	return said[len(said)-1]
}

// host is a bare Debian that systemd runs.
type host struct {
	*testing.T
	name string
}

// boot starts a bare Debian without a network, with a release in /release.
func boot(t *testing.T, release string) *host {
	t.Helper()
	h := &host{t, "sluice-install-debian"}
	_ = exec.Command("podman", "rm", "-f", "-t", "1", h.name).Run() // of a run that was killed
	args := append([]string{"run", "-d", "--name", h.name, "--systemd=always", "--privileged", "--network", "none", "-v", release + ":/release:ro"}, limits...)
	image := debian(t)
	t.Cleanup(func() { _ = exec.Command("podman", "rm", "-f", "-t", "1", h.name).Run() })
	podman(t, append(args, image, "/lib/systemd/systemd")...)
	h.until("the system has started", "systemctl is-system-running")
	return h
}

// try runs commands as a shell does that stops at the first that fails.
func (h *host) try(commands string) (string, error) {
	return attempt(h.Context(), ".", nil, "podman", "--runtime", "/usr/sbin/runc", "exec", h.name, "sh", "-euc", commands)
}

func (h *host) run(commands string) string {
	h.Helper()
	out, err := h.try(commands)
	if err != nil {
		log, _ := h.try("journalctl --no-pager -n 50 -u sluice")
		h.Fatalf("%s: %v\n%s\n%s", commands, err, out, log)
	}
	return strings.TrimSpace(out)
}

func (h *host) until(what, commands string) {
	h.Helper()
	for end := time.Now().Add(proctest.Patience); ; time.Sleep(200 * time.Millisecond) {
		out, err := h.try(commands)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			h.Fatalf("after %v it is still not so: %s: %v\n%s", proctest.Patience, what, err, out)
		}
	}
}

const ping = "sluice ping --gate http://127.0.0.1:7979"

// The commands of docs/install.md, as they stand there, verify a release on a bare Debian, unpack it and make a service of it that systemd
// runs: without root, with a configuration and a key, through a reload, a crash and a stop.
func TestReleaseAndServiceOnABareDebian(t *testing.T) {
	h := boot(t, native(t))
	h.run("cp /release/* . 2>/dev/null || true\n" + block(t, "docs/install.md", "Release") + "\n" + block(t, "docs/install.md", "Service"))
	show := func(what string) string { return h.run("systemctl show sluice --value -p " + what) }
	if n := show("NRestarts"); n != "0" {
		t.Errorf("it was started again %s times", n)
	}
	if uid := h.run("stat -c %u /proc/" + show("MainPID")); uid == "0" {
		t.Error("it runs as root")
	}
	h.run(`mkdir -p /etc/sluice && (umask 077 && echo TEST_KEY=secret > /etc/sluice/env)
cat > /etc/sluice/sluice.yaml <<END
resources: {api: {upstream: 'http://127.0.0.1:1'}}
END
systemctl restart sluice && ` + ping)
	h.run("grep -qz TEST_KEY=secret /proc/" + show("MainPID") + "/environ")
	h.run("sed -i s/api:/other:/ /etc/sluice/sluice.yaml && systemctl reload sluice")
	h.until("the reload is in the log", "journalctl --no-pager -t sluice | grep -i reloaded")
	h.run("kill -9 " + show("MainPID"))
	h.until("it was started again", ping)
	h.run("systemctl stop sluice")
	if result, status := show("Result"), show("ExecMainStatus"); result != "success" || status != "0" {
		t.Errorf("it ends with %s, %s:\n%s", result, status, h.run("journalctl --no-pager -n 20 -u sluice"))
	}

	// A user's own service, as docs/start.md has it.
	h.run("useradd -m me && loginctl enable-linger me")
	h.until("the user's manager runs", "su - me -c 'XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user is-system-running'")
	me := func(commands string) string {
		h.Helper()
		return h.run("su - me -c 'set -eu; export XDG_RUNTIME_DIR=/run/user/$(id -u) ANTHROPIC_API_KEY=sk-ant-test; " + commands + "'")
	}
	me("sluice setup --yes --service")
	me(ping + "; . ~/.config/sluice/env.sh; echo $ANTHROPIC_BASE_URL | grep 127.0.0.1:7979; sluice service status; systemctl --user reload sluice")
	me("sluice service remove")
	if out, err := h.try(ping); err == nil {
		t.Errorf("a removed service still answers: %s", out)
	}
}
