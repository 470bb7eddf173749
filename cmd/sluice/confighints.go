package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/sluicehq/sluice/internal/shellword"
)

// usualNames lists the usual names of configuration files.
var usualNames = []string{"sluice.yaml", "sluice.yml", ".sluice.yaml", ".sluice.yml"}

// unselected returns the name of a configuration file in the working directory if none was selected, and "" otherwise.
// The file is never read: a cloned repository must not decide where keys are sent.
func unselected(selected string) string {
	if selected != "" {
		return ""
	}
	i := slices.IndexFunc(usualNames, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	})
	if i < 0 {
		return ""
	}
	return usualNames[i]
}

// selectHint says how to select the file of the working directory.
func selectHint(name string) string {
	path := name
	if dir, err := os.Getwd(); err == nil {
		path = filepath.Join(dir, name)
	}
	return name + " in this directory is not read unless you select it: --config " + name + ", or export SLUICE_CONFIG=" + shellword.Quote(path)
}

// othersHint says how to add resources that are not built in.
func othersHint(selected string) string {
	if name := unselected(selected); name != "" {
		return selectHint(name)
	}
	return "a configuration file adds others"
}
