package service

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// unit is the name of the service for systemd.
const unit = "sluice.service"

type systemd struct{ home string }

func (*systemd) Name() string { return Systemd }

func (s *systemd) File() string {
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(s.home, ".config")
	}
	return filepath.Join(base, "systemd", "user", unit)
}

// Text returns the service's unit. systemd restarts it on failure, and gives it time to finish running requests.
func (*systemd) Text(spec *Spec) (string, error) {
	if err := plain(append([]string{spec.Env}, spec.Args...)...); err != nil {
		return "", err
	}
	words := make([]string, len(spec.Args))
	for i, a := range spec.Args {
		words[i] = systemdWord(a)
	}
	return "# " + mark + `; sluice service remove removes it.
[Unit]
Description=Sluice, one gate for all callers of a shared API quota
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=` + strings.Join(words, " ") + `
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
EnvironmentFile=-` + strings.ReplaceAll(spec.Env, "%", "%%") + `
Restart=on-failure
RestartSec=2
TimeoutStopSec=45
NoNewPrivileges=yes
UMask=0077
LimitNOFILE=65536

[Install]
WantedBy=default.target
`, nil
}

// systemdWord quotes text as one word of a command line in a unit.
func systemdWord(text string) string {
	text = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(text)
	return `"` + text + `"`
}

func (s *systemd) Install(ctx context.Context, spec *Spec) error {
	text, err := s.Text(spec)
	if err != nil {
		return err
	}
	if _, err := call(ctx, "systemctl", "--user", "show-environment"); err != nil { // before writing anything
		return err
	}
	if err := write(s.File(), text); err != nil {
		return err
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unit}, {"restart", unit}} {
		if _, err := call(ctx, "systemctl", append([]string{"--user"}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

func (s *systemd) Status(ctx context.Context) (State, error) {
	st := State{File: s.File(), Installed: installed(s.File())}
	if !st.Installed {
		return st, nil
	}
	word, err := call(ctx, "systemctl", "--user", "is-active", unit)
	if word == "" && err != nil { // it prints the state even if it fails because of it
		return st, err
	}
	st.Word, st.Running = cmp.Or(word, "unknown"), word == "active"
	return st, nil
}

func (s *systemd) Remove(ctx context.Context) (bool, error) {
	if !installed(s.File()) {
		return remove(s.File())
	}
	if _, err := call(ctx, "systemctl", "--user", "disable", "--now", unit); err != nil {
		return false, err
	}
	if _, err := remove(s.File()); err != nil {
		return false, err
	}
	_, err := call(ctx, "systemctl", "--user", "daemon-reload")
	return true, err
}
