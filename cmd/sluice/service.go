package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/service"
	"github.com/sluicehq/sluice/internal/shellword"
	"github.com/sluicehq/sluice/internal/statedir"
)

func newService() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Run the gate in the background, from login on",
		Long: `Service runs sluice serve as a service of the current user, with systemd on Linux and launchd on
macOS. It starts at login and restarts on failure. Root is not needed.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("manager", "", "service manager `NAME`: systemd or launchd; else this system's")
	completeFlag(cmd, "manager", cobra.FixedCompletions([]string{service.Systemd, service.Launchd}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newServiceInstall(), newServiceStatus(), newServiceRemove())
	return cmd
}

// serviceJSON is the output of the service commands with --json.
type serviceJSON struct {
	Manager   string `json:"manager"`
	File      string `json:"file"`
	Installed bool   `json:"installed"`
	Running   bool   `json:"running"`
	State     string `json:"state"` // in the manager's words
}

func newServiceInstall() *cobra.Command {
	var listen []string
	var show bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the gate as a user service, and start it",
		Long: `Install writes a file for systemd or launchd, enables the service and starts it. An installed service
is replaced. It runs sluice serve with the current --config or SLUICE_CONFIG, and --store or
SLUICE_STORE.

The service does not see your shell's variables. Put keys that resources.NAME.inject names into
service.env in your configuration directory (~/.config/sluice), one NAME=VALUE per line.

Exit codes: 0 it runs; 64 usage; 69 there is no service manager, or it refuses; 78 bad configuration.`,
		Example: "  sluice service install\n" +
			"  sluice service install --config ~/.config/sluice/sluice.yaml --listen 127.0.0.1:7979 --listen unix:$HOME/.sluice.sock\n" +
			"  sluice service install --print",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := managerOf(cmd)
			if err != nil {
				return err
			}
			spec, err := serviceSpec(cmd, listen)
			if err != nil {
				return err
			}
			if show {
				text, err := m.Text(spec)
				if err != nil {
					return serviceFailure(err)
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return written(err)
			}
			return installService(cmd, m, spec)
		},
	}
	cmd.Flags().StringArrayVar(&listen, "listen", nil, "`ADDRESS` to listen on, as in serve; may be repeated")
	cmd.Flags().BoolVar(&show, "print", false, "only print the file")
	return cmd
}

func installService(cmd *cobra.Command, m service.Manager, spec *service.Spec) error {
	if err := m.Install(cmd.Context(), spec); err != nil {
		return serviceFailure(err)
	}
	st, err := m.Status(cmd.Context())
	if err != nil {
		return serviceFailure(err)
	}
	logs := "journalctl --user -u sluice"
	if m.Name() == service.Launchd {
		logs = "tail -f " + shellword.Quote(spec.Log)
	}
	return printLine(cmd, serviceOf(m, st), "%s: installed, %s\nlogs: %s", harmless(st.File), harmless(st.Word), logs)
}

func newServiceStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether the service is installed and runs",
		Long:  "Status exits with 0 if the service runs, and with 69 if it does not or is not installed.",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := managerOf(cmd)
			if err != nil {
				return err
			}
			st, err := m.Status(cmd.Context())
			if err != nil {
				return serviceFailure(err)
			}
			out := serviceOf(m, st)
			if st.Running {
				return printLine(cmd, out, "%s: %s", harmless(st.File), harmless(st.Word))
			}
			f := &failure{code: exitUnavailable, message: "the service is not installed", hint: "sluice service install installs and starts it"}
			if st.Installed {
				f.message = "the service does not run: " + st.Word
				f.hint = "sluice service install starts it again; journalctl --user -u sluice shows why it ended"
			}
			f.extra = map[string]any{"manager": out.Manager, "file": out.File, "installed": out.Installed, "running": false, "state": out.State}
			return f
		},
	}
}

func newServiceRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove",
		Short: "Stop the service and remove it",
		Args:  atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := managerOf(cmd)
			if err != nil {
				return err
			}
			was, err := m.Remove(cmd.Context())
			if err != nil {
				return serviceFailure(err)
			}
			text := "removed"
			if !was {
				text = "there was nothing to remove"
			}
			return printLine(cmd, map[string]any{"manager": m.Name(), "file": m.File(), "removed": was}, "%s: %s", harmless(m.File()), text)
		},
	}
}

func serviceOf(m service.Manager, st service.State) serviceJSON {
	return serviceJSON{Manager: m.Name(), File: st.File, Installed: st.Installed, Running: st.Running, State: st.Word}
}

func managerOf(cmd *cobra.Command) (service.Manager, error) {
	name, _ := cmd.Flags().GetString("manager")
	if name != "" && name != service.Systemd && name != service.Launchd {
		known := []string{service.Systemd, service.Launchd}
		return nil, &failure{code: exitUsage, message: fmt.Sprintf("--manager: there is no %.80q", name), hint: didYouMean(name, known, "it is "+strings.Join(known, " or "))}
	}
	m, err := service.Find(name)
	if err != nil {
		return nil, serviceFailure(err)
	}
	return m, nil
}

// serviceFailure describes what prevents a service.
func serviceFailure(err error) error {
	f := &failure{code: exitUnavailable, message: strings.Join(strings.Fields(err.Error()), " "), hint: "sluice serve runs the gate in the foreground, under any supervisor"}
	switch {
	case errors.Is(err, service.ErrForeign):
		f.code, f.hint = exitUsage, "look at the file, and remove it if it is not needed"
	case strings.Contains(f.message, "bus"), strings.Contains(f.message, "DBUS"):
		f.hint = "systemd does not run for this user: log in on the machine itself or with ssh, or let it run without a login with loginctl enable-linger; " + f.hint
	}
	return f
}

// serviceSpec returns the service: sluice serve as it would run here, with absolute paths.
func serviceSpec(cmd *cobra.Command, listen []string) (*service.Spec, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, &failure{code: exitInternal, message: err.Error()}
	}
	args := []string{program, "serve"}
	if name := configName(cmd, nil); name != "" {
		if _, err := loadConfig(name); err != nil {
			return nil, err
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, &failure{code: exitInternal, message: err.Error()}
		}
		args = append(args, "--config", path)
	}
	store, _ := cmd.Flags().GetString("store")
	if store == "" {
		store = os.Getenv("SLUICE_STORE")
	}
	if store != "" {
		if strings.Contains(store, "@") {
			return nil, &failure{code: exitUsage, message: "the address of the store may hold a password, which would be in the file of the service", hint: "write it as store: ${STORE} in the configuration, and STORE=... into service.env"}
		}
		if dir, ok := strings.CutPrefix(store, "file:"); ok && dir != "" {
			if dir, err = filepath.Abs(dir); err == nil {
				store = "file:" + dir
			}
		}
		args = append(args, "--store", store)
	}
	for _, address := range listen {
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			if path, err = filepath.Abs(path); err == nil {
				address = "unix:" + path
			}
		}
		args = append(args, "--listen", address)
	}
	state, err := statedir.Default()
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "no directory for the service: " + err.Error(), hint: "set HOME"}
	}
	home, err := configHome()
	if err != nil {
		return nil, err
	}
	return &service.Spec{Args: args, Env: filepath.Join(home, "service.env"), Log: filepath.Join(state, "serve.log")}, nil
}

// configHome returns the directory of the user's Sluice configuration.
func configHome() (string, error) {
	base := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &failure{code: exitUnavailable, message: "no directory for a configuration: " + err.Error(), hint: "set HOME"}
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "sluice"), nil
}
