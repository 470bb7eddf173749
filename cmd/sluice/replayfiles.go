package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/replay"
)

// sideFile is a file that a flag of replay asks for. Its path "-" is standard output, instead of the result.
type sideFile struct {
	file    outFile
	keeps   bool // an existing file is not replaced
	content func(*replay.Replay, *replay.Report) (func(io.Writer) error, error)
}

// write writes the file, or prints it to out.
func (o *sideFile) write(out io.Writer, r *replay.Replay, rep *replay.Report) error {
	content, err := o.content(r, rep)
	if err != nil {
		return &failure{code: exitUsage, message: err.Error(), hint: "leave " + o.file.flag + " out"}
	}
	if o.file.path == "-" {
		return written(content(out))
	}
	return o.file.write(content)
}

// outputs returns the files that the flags ask for. Each is checked before the log is read.
func (f *replaying) outputs(cmd *cobra.Command, log string) ([]sideFile, error) {
	text := func(b []byte) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(b); return err }
	}
	var all []sideFile
	for _, o := range []sideFile{
		{outFile{"--html", "page", f.html}, false, func(_ *replay.Replay, rep *replay.Report) (func(io.Writer) error, error) {
			return replayPage(rep).writeTo, nil
		}},
		{outFile{"--scenario", "scenario", f.scenario}, true, func(r *replay.Replay, _ *replay.Report) (func(io.Writer) error, error) {
			b, err := r.Scenario()
			return text(b), err
		}},
		{outFile{"--config-out", "configuration", f.config}, true, func(r *replay.Replay, _ *replay.Report) (func(io.Writer) error, error) {
			return text(r.Config()), nil
		}},
	} {
		if !cmd.Flags().Changed(o.file.flag[2:]) {
			continue
		}
		all = append(all, o)
	}
	if err := apart(all, log, configName(cmd, nil), asJSON(cmd)); err != nil {
		return nil, err
	}
	for i := range all {
		if err := all[i].check(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// check checks that the file can be written.
func (o *sideFile) check() error {
	switch o.file.path {
	case "":
		return &failure{code: exitUsage, message: o.file.flag + ": the name of the file is empty", hint: "give the name of a file to write; - prints the " + o.file.what}
	case "-":
		return nil
	}
	if err := o.file.check(); err != nil {
		return err
	}
	if _, err := os.Lstat(o.file.path); err == nil && o.keeps {
		return &failure{code: exitUsage, message: fmt.Sprintf("%s %s: the file exists", o.file.flag, o.file.path), hint: "the file was not changed; use another name, or remove the file first"}
	}
	return nil
}

// apart checks that no file would replace the log, the configuration or another one of the files, and that only one
// output goes to standard output.
func apart(all []sideFile, log, config string, json bool) error {
	taken := map[string]string{} // what is at a path
	if json {
		taken["-"] = "--json"
	}
	if config != "" {
		taken[resolved(config)] = "the configuration in use"
	}
	if log != "-" {
		log = resolved(log)
		taken[log] = "the log"
	}
	for _, o := range all {
		at := resolved(o.file.path)
		other := taken[at]
		if filepath.Dir(at) == log && strings.HasPrefix(filepath.Base(at), "events") {
			other = "a file of the log"
		}
		switch {
		case other != "" && at == "-":
			return &failure{code: exitUsage, message: fmt.Sprintf("%s - and %s both print to standard output", o.file.flag, other), hint: o.file.flag + " FILE writes the " + o.file.what + " into a file"}
		case other != "":
			return &failure{code: exitUsage, message: fmt.Sprintf("%s %s would replace %s", o.file.flag, o.file.path, other), hint: "give the " + o.file.what + " a name of its own"}
		}
		taken[at] = "the file of " + o.file.flag
		if at == "-" {
			taken[at] = o.file.flag + " -"
		}
	}
	return nil
}

// resolved returns one name for each file: absolute, without symbolic links. It leaves "-" and "" as they are.
func resolved(path string) string {
	if path == "-" || path == "" {
		return path
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}
