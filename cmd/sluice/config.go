package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // resets name time zones, which some machines lack

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write, check and show a configuration file",
		Long: "A configuration is one YAML file; docs/configuration.md describes every field.\n" +
			"The file is the argument, or --config, or SLUICE_CONFIG.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigInit(), newConfigCheck(), newConfigShow(), newConfigSchema())
	return cmd
}

func newConfigInit() *cobra.Command {
	return &cobra.Command{
		Use:     "init [FILE]",
		Short:   "Print a file to start from, or write it to FILE",
		Example: "  sluice config init sluice.yaml",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := cmd.OutOrStdout().Write(config.Init())
				return written(err)
			}
			return initFile(args[0])
		},
	}
}

// initFile writes the starter file. It never overwrites a file.
func initFile(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		hint := "give a file in a directory that is there and can be written to"
		if errors.Is(err, fs.ErrExist) {
			hint = "the file was not changed; use another name, or remove the file first"
		}
		return &failure{code: exitUsage, message: err.Error(), hint: hint}
	}
	_, err = f.Write(config.Init())
	return written(errors.Join(err, f.Close()))
}

func newConfigCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Check a configuration and list every mistake",
		Example: "  sluice config check sluice.yaml\n  sluice config check sluice.yaml --json",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := configName(cmd, args)
			if name == "" {
				return whichFile()
			}
			f, err := loadConfig(name)
			if err != nil {
				return withAllErrors(name, err)
			}
			if _, err := f.UpstreamCerts(); err != nil {
				return withAllErrors(name, configFailure(err))
			}
			if _, err := f.ClientTable(); err != nil {
				return withAllErrors(name, clientsFailure(name, err))
			}
			for _, w := range f.Warnings() {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", harmless(w))
			}
			return printChecked(cmd, name, f)
		},
	}
}

// whichFile returns the error for a missing file name. It mentions a file in the working directory, but does not use
// it.
func whichFile() error {
	f := &failure{code: exitUsage, message: "no configuration file given", hint: "give it as an argument, with --config, or in SLUICE_CONFIG"}
	if name := unselected(""); name != "" {
		f.hint = "there is one here: sluice config check " + name
	}
	return f
}

// errorAt is one error in a file, as JSON. Unknown values are null.
type errorAt struct {
	File    string `json:"file"`
	Line    *int   `json:"line"`
	Column  *int   `json:"column"`
	Field   string `json:"field"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// withAllErrors adds every error in a file to the JSON of a failure.
func withAllErrors(name string, err error) error {
	f := asFailure(err)
	list := []errorAt{}
	for _, e := range f.parse {
		at := errorAt{File: e.File, Field: e.Field, Message: e.Message, Hint: e.Hint}
		if e.Line > 0 {
			at.Line, at.Column = &e.Line, &e.Column
		}
		list = append(list, at)
	}
	if len(list) == 0 {
		list = append(list, errorAt{File: name, Message: f.message, Hint: f.hint})
	}
	f.extra = map[string]any{"file": name, "ok": false, "errors": list}
	return f
}

func printChecked(cmd *cobra.Command, name string, f *config.File) error {
	resources := slices.Sorted(maps.Keys(f.Resources))
	text := ", with no resource yet"
	if len(resources) > 0 {
		text = ": " + strings.Join(resources, ", ")
	}
	return printLine(cmd, map[string]any{
		"file": name, "ok": true, "errors": []errorAt{}, "resources": append([]string{}, resources...), "warnings": append([]string{}, f.Warnings()...),
	}, "%s: ok%s", name, text)
}

func newConfigShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print every configuration value in effect",
		Long: `Show prints every field with its value in effect. Without a file it prints the defaults.
Variables are printed by name, not by value, and passwords in addresses are masked.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := selectedConfig(cmd, args)
			if err != nil {
				return err
			}
			text, err := f.Show()
			if err == nil && asJSON(cmd) {
				text, err = yaml.YAMLToJSON(text)
			}
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return written(err)
		},
	}
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the configuration, for editors",
		Example: "  sluice config schema > sluice.schema.json",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := config.Schema()
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return written(err)
		},
	}
}

// configName returns the file that the command line or the environment names, if any.
func configName(cmd *cobra.Command, args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	if name, _ := cmd.Flags().GetString("config"); name != "" {
		return name
	}
	return os.Getenv("SLUICE_CONFIG")
}

// selectedConfig returns the configuration that the command line or the environment names, else the defaults.
func selectedConfig(cmd *cobra.Command, args []string) (*config.File, error) {
	if name := configName(cmd, args); name != "" {
		return loadConfig(name)
	}
	return config.Default(), nil
}

// loadConfig reads a file and checks that a gate can be built from it.
func loadConfig(name string) (*config.File, error) {
	f, err := config.Load(name)
	if err != nil {
		return nil, configFailure(err)
	}
	if _, err := f.GateConfig(time.Now()); err != nil {
		return nil, &failure{code: exitConfig, message: name + ": " + err.Error(), hint: "docs/configuration.md describes every field"}
	}
	return f, nil
}

// configFailure reports all mistakes in a file: the first as the error, the others below it.
func configFailure(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &failure{code: exitConfig, message: err.Error(), hint: "sluice config init FILE writes one to start from"}
	}
	bad, ok := errors.AsType[*config.ParseError](err)
	if !ok {
		return &failure{code: exitConfig, message: err.Error(), hint: "give a YAML file that can be read; docs/configuration.md describes it"}
	}
	f := &failure{code: exitConfig, message: bad.Error(), detail: bad.Excerpt, hint: "docs/configuration.md describes every field"}
	f.parse = config.Errors{bad}
	if all, ok := errors.AsType[config.Errors](err); ok {
		f.parse = all
		for _, more := range all[1:] {
			f.detail += "\nerror: " + more.Error() + "\n" + more.Excerpt
		}
		f.detail = strings.Trim(f.detail, "\n")
	}
	return f
}
