package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of a published binary; make release sets it.
var release string

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Time     string `json:"time"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and Go version",
		Args:  atMost(0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return printVersion(cmd) },
	}
}

func printVersion(cmd *cobra.Command) error {
	v := buildVersion(debug.ReadBuildInfo())
	commit := ""
	if v.Revision != "" {
		commit = fmt.Sprintf(" (%.12s)", v.Revision)
	}
	return printLine(cmd, v, "sluice %s%s %s", v.Version, commit, v.Go)
}

func buildVersion(info *debug.BuildInfo, ok bool) versionJSON {
	v := versionJSON{Version: "unknown"}
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if v.Version = cmp.Or(release, info.Main.Version); v.Version == "" {
		v.Version = "unknown"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
