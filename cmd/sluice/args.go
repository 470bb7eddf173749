package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// needs asks for exactly these arguments, by their names.
func needs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s: %s is missing", cmd.CommandPath(), strings.Join(names[len(args):], " "))
		}
		return tooMany(cmd, args, len(names))
	}
}

// atMost allows for so many arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return tooMany(cmd, args, n) }
}

func tooMany(cmd *cobra.Command, args []string, most int) error {
	if len(args) <= most {
		return nil
	}
	if most == 0 && cmd.HasSubCommands() {
		return fmt.Errorf("%s: there is no command %.80q", cmd.CommandPath(), args[0])
	}
	return fmt.Errorf("%s: %.80q is one argument too many", cmd.CommandPath(), args[most])
}

// flagTypes is what values of flags have to be.
var flagTypes = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, not below 0", "duration": "a time such as 500ms, 30s or 5m", "bool": "true or false",
}

// explainFlag says what is wrong with a flag in words of the command line.
func explainFlag(_ *cobra.Command, err error) error {
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
