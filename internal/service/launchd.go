package service

import (
	"context"
	"encoding/xml"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// label is the name of the service for launchd.
const label = "dev.sluice.gate"

type launchd struct{ home string }

func (*launchd) Name() string { return Launchd }

func (l *launchd) File() string {
	return filepath.Join(l.home, "Library", "LaunchAgents", label+".plist")
}

// Text returns the service's description. A shell loads the file of variables, because launchd cannot.
func (*launchd) Text(spec *Spec) (string, error) {
	if err := plain(append([]string{spec.Env, spec.Log}, spec.Args...)...); err != nil {
		return "", err
	}
	args := append([]string{"/bin/sh", "-c", `if [ -r "$0" ]; then set -a; . "$0"; set +a; fi; exec "$@"`, spec.Env}, spec.Args...)
	var list strings.Builder
	for _, a := range args {
		list.WriteString("    <string>" + escaped(a) + "</string>\n")
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- ` + mark + `; sluice service remove removes it. -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>` + label + `</string>
  <key>ProgramArguments</key>
  <array>
` + list.String() + `  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>45</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>` + escaped(spec.Log) + `</string>
  <key>StandardErrorPath</key>
  <string>` + escaped(spec.Log) + `</string>
</dict>
</plist>
`, nil
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder never fails
	return b.String()
}

func domain() string { return "gui/" + strconv.Itoa(os.Getuid()) }

func (l *launchd) Install(ctx context.Context, spec *Spec) error {
	text, err := l.Text(spec)
	if err != nil {
		return err
	}
	was := installed(l.File())
	if err := write(l.File(), text); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o700); err != nil {
		return err
	}
	if was {
		_, _ = call(ctx, "launchctl", "bootout", domain()+"/"+label) // it may not be loaded
	}
	_, err = call(ctx, "launchctl", "bootstrap", domain(), l.File())
	return err
}

func (l *launchd) Status(ctx context.Context) (State, error) {
	st := State{File: l.File(), Installed: installed(l.File())}
	if !st.Installed {
		return st, nil
	}
	said, err := call(ctx, "launchctl", "print", domain()+"/"+label)
	if err != nil {
		st.Word = "not loaded"
		return st, nil
	}
	st.Word = "unknown"
	for line := range strings.Lines(said) {
		if word, ok := strings.CutPrefix(strings.TrimSpace(line), "state = "); ok {
			st.Word, st.Running = word, word == "running"
			break
		}
	}
	return st, nil
}

func (l *launchd) Remove(ctx context.Context) (bool, error) {
	if !installed(l.File()) {
		return remove(l.File())
	}
	_, _ = call(ctx, "launchctl", "bootout", domain()+"/"+label) // it may not be loaded
	return remove(l.File())
}
