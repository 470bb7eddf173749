package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/loopback"
	"github.com/sluicehq/sluice/internal/setup"
	"github.com/sluicehq/sluice/internal/shellword"
	"github.com/sluicehq/sluice/internal/statedir"
)

func newSetup() *cobra.Command {
	var yes, service, check bool
	var listen string
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Find the clients on this machine and point them to the gate",
		Long: `Setup looks for the clients of docs/clients-table.md: their programs, their files, and keys of SDKs in
the environment. It prints how each one reaches the gate, what works first. With --yes it writes two
files:

  ~/.config/sluice/sluice.yaml  a configuration with a resource for each provider
  ~/.config/sluice/env.sh       the variables, to be read by your shell

Existing files are not overwritten. Setup never reads or changes other programs' files, and prints and
writes no key. With --service the gate also becomes a user service, and starts.

With --check each client makes one call through a gate of its own to a model of its provider on this
machine, in an empty home directory and with a key of nobody. No call reaches a provider. SDKs are
tried with a call like theirs. If a client fails, the exit code is 69.`,
		Example: "  sluice setup\n  sluice setup --check\n  sluice setup --yes --service\n  sluice setup --json | jq -r '.clients[].name'",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if service && !yes {
				return &failure{code: exitUsage, message: "--service changes this machine", hint: "give --yes as well"}
			}
			table, err := setupTable(cmd)
			if err != nil {
				return err
			}
			p, err := planSetup(listen, table)
			if err != nil {
				return err
			}
			if check {
				if err := p.check(cmd, table); err != nil {
					return err
				}
			}
			if yes {
				if err := p.write(); err != nil {
					return err
				}
			}
			if service {
				if err := p.serve(cmd); err != nil {
					return err
				}
			}
			failed := p.failed()
			if asJSON(cmd) {
				if failed != nil {
					return failed // has the result too
				}
				return written(printJSON(cmd.OutOrStdout(), p))
			}
			if err := p.print(cmd, yes, check); err != nil {
				return err
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "write the files; nothing is changed without it")
	cmd.Flags().BoolVar(&service, "service", false, "with --yes: also install the gate as a service")
	cmd.Flags().BoolVar(&check, "check", false, "make one call of each client through a gate to a model of its provider")
	cmd.Flags().StringVar(&listen, "listen", config.DefaultListen, "`ADDRESS` that the gate will listen on")
	return cmd
}

// setupTable returns the clients that setup looks for: the built-in ones, and those of a configuration.
func setupTable(cmd *cobra.Command) (*clients.Table, error) {
	f, err := selectedConfig(cmd, nil)
	if err != nil {
		return nil, err
	}
	table, err := f.ClientTable()
	if err != nil {
		return nil, clientsFailure(configName(cmd, nil), err)
	}
	return table, nil
}

// setupJSON is what setup found and did.
type setupJSON struct {
	Gate    string         `json:"gate"`
	Socket  *string        `json:"socket"` // gh needs it; null if gh was not found
	Clients []setup.Client `json:"clients"`
	Config  setupFile      `json:"config"`
	Env     setupFile      `json:"env"`
	Service bool           `json:"service"` // the service was installed
	Next    []string       `json:"next"`    // commands left to run

	listen []string
}

// setupFile is a file that setup writes.
type setupFile struct {
	Path    string `json:"path"`
	Exists  bool   `json:"exists"`  // existed before, and stays as it is
	Written bool   `json:"written"` // written now
	text    string
}

// planSetup examines the machine and decides what to do.
func planSetup(listen string, table *clients.Table) (*setupJSON, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "" || port == "0" || !loopback.Host(host) {
		return nil, &failure{
			code: exitUsage, message: fmt.Sprintf("--listen: %.80q is not a loopback address", listen), hint: "use 127.0.0.1:PORT; docs/proxy.md describes access from other machines",
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "no home directory: " + err.Error(), hint: "set HOME"}
	}
	dir, err := configHome()
	if err != nil {
		return nil, err
	}
	state, err := statedir.Default()
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "no state directory: " + err.Error(), hint: "set HOME"}
	}
	gate := setup.Endpoint{URL: "http://" + listen, Socket: filepath.Join(state, "gate.sock")}
	p := &setupJSON{Gate: gate.URL, listen: []string{listen}, Next: []string{}}
	p.Clients = setup.Find(setup.Machine{Home: home, Env: os.Getenv, Exists: exists}, gate, table)
	if setup.Socket(p.Clients) {
		p.Socket = &gate.Socket
		p.listen = append(p.listen, "unix:"+gate.Socket)
	}
	p.Config = setupFile{Path: filepath.Join(dir, "sluice.yaml"), text: p.configText(listen)}
	p.Env = setupFile{Path: filepath.Join(dir, "env.sh"), text: p.envText()}
	p.Config.Exists, p.Env.Exists = exists(p.Config.Path), exists(p.Env.Path)
	if _, err := config.Parse("sluice.yaml", []byte(p.Config.text), func(string) (string, bool) { return "", false }); err != nil {
		return nil, &failure{code: exitInternal, message: "setup would write a configuration that is wrong: " + err.Error()}
	}
	p.next()
	return p, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// configText returns the configuration: a resource for each provider whose clients were found.
func (p *setupJSON) configText(listen string) string {
	var b strings.Builder
	b.WriteString("# Written by sluice setup. docs/configuration.md describes every field;\n# sluice config show prints all of them with their values.\n\n")
	fmt.Fprintf(&b, "listen: %q\n", listen)
	names := setup.Resources(p.Clients)
	if len(names) == 0 {
		b.WriteString("\n# No client was found. All built-in providers can be used without a line here.\n")
		return b.String()
	}
	b.WriteString("\nresources:\n")
	for _, name := range names {
		var of []string
		for i := range p.Clients {
			for _, r := range p.Clients[i].Resources {
				if r == name {
					of = append(of, p.Clients[i].Name)
				}
			}
		}
		fmt.Fprintf(&b, "  %s: {provider: %s}  # %s\n", name, name, strings.Join(of, ", "))
	}
	return b.String()
}

// envText returns the file that a shell reads. If the gate does not run, clients cannot reach it, so a variable turns
// all of it off.
func (p *setupJSON) envText() string {
	return "# Written by sluice setup: points clients to the gate. Read it from your shell's profile.\n" +
		"# SLUICE_OFF=1 leaves them as they are.\n" +
		"if [ -z \"${SLUICE_OFF:-}\" ]; then\n" +
		"  export SLUICE_CONFIG=" + shellword.Quote(p.Config.Path) + "\n" +
		strings.Join(indented(setup.Exports(p.Clients)), "") +
		"fi\n"
}

func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l + "\n"
	}
	return out
}

// write writes the files that do not exist yet.
func (p *setupJSON) write() error {
	for _, f := range []*setupFile{&p.Config, &p.Env} {
		if f.Exists {
			continue
		}
		err := os.MkdirAll(filepath.Dir(f.Path), 0o700)
		var file *os.File
		if err == nil {
			file, err = os.OpenFile(f.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		}
		if errors.Is(err, fs.ErrExist) {
			f.Exists = true
			continue
		}
		if err == nil {
			_, err = file.WriteString(f.text)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return &failure{code: exitUnavailable, message: err.Error(), hint: "check permissions and free space there; sluice setup without --yes prints the lines"}
		}
		f.Written = true
	}
	return nil
}

// serve installs the service.
func (p *setupJSON) serve(cmd *cobra.Command) error {
	m, err := managerOf(cmd)
	if err != nil {
		return err
	}
	if err := cmd.Flags().Set("config", p.Config.Path); err != nil {
		return &failure{code: exitInternal, message: err.Error()}
	}
	spec, err := serviceSpec(cmd, p.listen)
	if err != nil {
		return err
	}
	if err := m.Install(cmd.Context(), spec); err != nil {
		return serviceFailure(err)
	}
	p.Service = true
	p.next()
	return nil
}

// next lists the remaining steps.
func (p *setupJSON) next() {
	p.Next = []string{}
	var listen strings.Builder
	for _, a := range p.listen {
		listen.WriteString(" --listen " + shellword.Quote(a))
	}
	if !p.Service {
		p.Next = append(p.Next, "sluice service install --config "+shellword.Quote(p.Config.Path)+listen.String())
	}
	p.Next = append(p.Next, ". "+shellword.Quote(p.Env.Path))
	for i := range p.Clients {
		for _, l := range p.Clients[i].Lines {
			if l.Where == setup.Run {
				p.Next = append(p.Next, l.Text)
			}
		}
	}
	for _, name := range setup.Resources(p.Clients) {
		p.Next = append(p.Next, "sluice ping "+name)
	}
}

func (p *setupJSON) print(cmd *cobra.Command, yes, checked bool) error {
	s := screenFor(cmd.OutOrStdout(), time.Now())
	if len(p.Clients) == 0 {
		s.line("No client was found: no program of docs/clients-table.md, and no key of an SDK in the environment.")
	}
	for i := range p.Clients {
		c := &p.Clients[i]
		ready := ""
		if c.Ready {
			ready = "; it sends to this gate already"
		}
		s.line("%s  (%s%s)", c.Name, harmless(c.Found), ready)
		for _, l := range c.Lines {
			var how []string
			if !slices.Contains([]string{setup.Shell, setup.Start, setup.Run}, l.Where) {
				how = append(how, "in "+l.Where)
			}
			if l.Where != c.Lines[0].Where {
				how = append(how, "instead")
			}
			s.line("  %s", harmless(strings.TrimRight(l.Text+"   "+strings.Join(how, ", "), " ")))
		}
		if c.Note != "" {
			s.line("  note: %s", harmless(c.Note))
		}
		if checked {
			s.line("  %s", harmless(checkLine(c)))
		}
	}
	s.line("")
	for _, f := range []*setupFile{&p.Config, &p.Env} {
		switch {
		case f.Written:
			s.line("%s: written", harmless(f.Path))
		case f.Exists:
			s.line("%s: was there, and stays as it is", harmless(f.Path))
		default:
			s.line("%s: not written", harmless(f.Path))
		}
	}
	if !yes {
		s.line("\nNothing was changed. sluice setup --yes writes these files.")
		return s.end()
	}
	s.line("\nNext:")
	for _, n := range p.Next {
		s.line("  %s", harmless(n))
	}
	return s.end()
}
