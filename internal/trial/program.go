package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/proxy/forward"
)

// key is what clients send as their key. Nobody has it.
const key = "sk-sluice-check-000000000000000000000000"

// keptVariables are those that a program needs to start. It gets no others, so that it finds no key and no address.
var keptVariables = []string{
	"PATH", "PATHEXT", "SYSTEMROOT", "SystemRoot", "COMSPEC", "ComSpec", "WINDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH",
	"ASDF_DATA_DIR", "MISE_DATA_DIR", "NVM_DIR", "PYENV_ROOT", "RBENV_ROOT", "VOLTA_HOME",
}

// homeVariables name directories that programs write to. All of them are the same one here, which is removed.
var homeVariables = []string{
	"HOME", "TMPDIR", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
}

// outlive is how long the output of a program may stay open after its end.
const outlive = 2 * time.Second

// run makes a client's program make one call, in an empty home directory. Its output is not shown.
func (b *Bench) run(ctx context.Context, c *clients.Client, program string) error {
	home, err := os.MkdirTemp(b.dir, "home-")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, c.Try.Args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = home, b.environment(c, home), outlive
	out, errs := &tail{}, &tail{}
	cmd.Stdout, cmd.Stderr = out, errs
	apart(cmd)
	err = cmd.Run()
	endGroup(cmd) // what it has left running
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Errorf("it did not end within %v", b.within)
	case errors.Is(err, exec.ErrWaitDelay):
	case err != nil:
		return fmt.Errorf("it ended with %w%s", err, lastLine(errs, out))
	}
	if out.blank() {
		return errors.New("it printed no answer" + lastLine(errs))
	}
	return nil
}

// environment returns the variables of a client's program: those that its way needs, and a key of nobody.
func (b *Bench) environment(c *clients.Client, home string) []string {
	var env []string
	set := func(name, value string) { env = append(env, name+"="+value) }
	for _, name := range keptVariables {
		if v, ok := os.LookupEnv(name); ok {
			set(name, v)
		}
	}
	for _, name := range homeVariables {
		set(name, home)
	}
	for _, name := range []string{"NO_COLOR", "DO_NOT_TRACK", "NODE_USE_ENV_PROXY"} {
		set(name, "1")
	}
	set("TERM", "dumb")
	through := b.wall
	if c.Intercepts() {
		through = b.open
		for _, name := range forward.BundleVariables(func(string) string { return "" }) {
			set(name, b.bundle)
		}
	}
	for _, name := range forward.ProxyVariables() {
		set(name, b.proxyURL(through, c).String())
	}
	for _, name := range forward.NoProxyVariables() {
		set(name, "localhost,127.0.0.1,::1")
	}
	if c.Way != clients.ByIntercept {
		for _, base := range b.table.For(c) {
			if at := b.base(c, base); at != "" {
				set(base.Variable, at)
			}
		}
	}
	if len(c.Keys) > 0 {
		set(c.Keys[0], key)
	}
	for name, value := range c.Try.Env {
		set(name, strings.ReplaceAll(value, "{key}", key))
	}
	return env
}

// base returns the address for one of a client's variables, or "" if it is of no use here.
func (b *Bench) base(c *clients.Client, v clients.Base) string {
	if _, known := calls[v.Provider]; !known || v.Signed != "" {
		return ""
	}
	return "http://" + b.direct + "/@" + url.PathEscape(c.Name) + "/" + v.Provider + v.Suffix
}

// bases returns the addresses that a client's variables hold, and their suffixes, by provider.
func (b *Bench) bases(c *clients.Client) (address, suffix map[string]string) {
	address, suffix = map[string]string{}, map[string]string{}
	for _, v := range slices.Backward(c.Bases) {
		if at := b.base(c, v); at != "" {
			address[v.Provider], suffix[v.Provider] = at, v.Suffix
		}
	}
	return address, suffix
}

// proxyURL returns the URL of a forward proxy for a client.
func (b *Bench) proxyURL(at string, c *clients.Client) *url.URL {
	return &url.URL{Scheme: "http", User: url.UserPassword(c.Name, b.secret), Host: at}
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// maxTail bounds what a tail keeps.
const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.Buffer.Write(p[max(0, len(p)-maxTail):])
	if over := t.Len() - maxTail; over > 0 {
		t.Next(over)
	}
	return len(p), nil
}

func (t *tail) blank() bool { return len(bytes.TrimSpace(t.Bytes())) == 0 }

// maxLine bounds how much of a program's last line is shown.
const maxLine = 200

// colors matches what programs send to terminals for colours.
var colors = lazyregexp.New("\x1b\\[[0-9;]*m")

// lastLine returns the last line of the first output that has one, to be put behind an error.
func lastLine(list ...*tail) string {
	for _, t := range list {
		if t.blank() {
			continue
		}
		lines := strings.Split(strings.TrimSpace(colors.ReplaceAllString(t.String(), "")), "\n")
		return fmt.Sprintf(": %.*s", maxLine, strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, strings.TrimSpace(lines[len(lines)-1])))
	}
	return ""
}
