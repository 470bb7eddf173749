package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/nearest"
)

// needs requires exactly these arguments, by their names.
func needs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s: %s is missing", cmd.CommandPath(), strings.Join(names[len(args):], " "))
		}
		return tooMany(cmd, args, len(names))
	}
}

// atMost allows up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return tooMany(cmd, args, n) }
}

func tooMany(cmd *cobra.Command, args []string, most int) error {
	if len(args) <= most {
		return nil
	}
	if most == 0 && cmd.HasSubCommands() {
		return noCommand(cmd, args[0])
	}
	return fmt.Errorf("%s: %.80q is one argument too many", cmd.CommandPath(), args[most])
}

// noCommand returns the error for an unknown subcommand, with the command that may have been meant.
func noCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	f := &failure{code: exitUsage, message: fmt.Sprintf("%s: unknown command %.80q", cmd.CommandPath(), name), hint: usage(cmd.CommandPath())}
	if meant := nearest.Name(name, names); meant != "" {
		f.hint = fmt.Sprintf("did you mean %s %s?", cmd.CommandPath(), meant)
	}
	return f
}

// didYouMean begins a hint with the name that may have been meant, if there is one, followed by rest.
func didYouMean(name string, names []string, rest string) string {
	if meant := nearest.Name(name, names); meant != "" {
		return fmt.Sprintf("did you mean %q? %s", meant, rest)
	}
	return rest
}

// flagTypes describes the expected values of flags.
var flagTypes = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, not below 0", "duration": "a time such as 500ms, 30s or 5m", "bool": "true or false",
}

// explainFlag describes a wrong flag in the words of the command line.
func explainFlag(cmd *cobra.Command, err error) error {
	if none, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return noFlag(cmd, none)
	}
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	want, ok := flagTypes[bad.GetFlag().Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s %.80q: must be %s", bad.GetFlag().Name, bad.GetValue(), want)
}

// noFlag returns the error for an unknown flag, with the flag that may have been meant.
func noFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	f := &failure{code: exitUsage, message: err.Error(), hint: usage(cmd.CommandPath())}
	if err.GetSpecifiedShortnames() != "" {
		return f
	}
	f.message = fmt.Sprintf("%s: there is no flag --%.80s", cmd.CommandPath(), err.GetSpecifiedName())
	var names []string
	add := func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	}
	cmd.Flags().VisitAll(add) // parsing has added the flags of parent commands
	if meant := nearest.Name(err.GetSpecifiedName(), names); meant != "" {
		f.hint = "did you mean --" + meant + "?"
	}
	return f
}
