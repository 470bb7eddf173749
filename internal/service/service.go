// Package service installs a program as a service of the logged-in user, with systemd or, on macOS, with launchd. It
// calls their programs, systemctl and launchctl.
package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Names of the managers.
const (
	Systemd = "systemd"
	Launchd = "launchd"
)

// within bounds one call of a manager's program.
const within = 30 * time.Second

// mark is in every file that this package writes, and shows that Sluice owns the file.
const mark = "Written by sluice service install"

// Errors of this package.
var (
	ErrNone    = errors.New("there is no service manager that Sluice knows")
	ErrForeign = errors.New("there is a file of this name that Sluice has not written")
)

// Spec describes the program to run.
type Spec struct {
	Args []string // program and arguments; the program is an absolute path
	Env  string   // file with variables, such as keys; it may be missing
	Log  string   // file that launchd writes to; systemd has its journal
}

// State is the state of a service.
type State struct {
	File      string // the file that describes it
	Installed bool
	Running   bool
	Word      string // the manager's own word: active, failed, ...
}

// Manager runs services.
type Manager interface {
	Name() string
	// File returns the path of the service's description.
	File() string
	// Text returns the content of that file.
	Text(s *Spec) (string, error)
	// Install writes the file and starts or restarts the service.
	Install(ctx context.Context, s *Spec) error
	Status(ctx context.Context) (State, error)
	// Remove stops the service and removes its file. It returns false if there was none.
	Remove(ctx context.Context) (bool, error)
}

// Find returns a manager by its name, or the one of this system if the name is empty. It fails if the manager's program is missing.
func Find(name string) (Manager, error) {
	if name == "" {
		name = map[string]string{"linux": Systemd, "darwin": Launchd}[runtime.GOOS]
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	var m Manager
	program := ""
	switch name {
	case Systemd:
		m, program = &systemd{home: home}, "systemctl"
	case Launchd:
		m, program = &launchd{home: home}, "launchctl"
	default:
		return nil, fmt.Errorf("%w on %s", ErrNone, runtime.GOOS)
	}
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("%w: %s is not on this machine", ErrNone, program)
	}
	return m, nil
}

// call runs a manager's program and returns its output.
func call(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(errs.String()); said != "" {
			err = errors.New(said)
		}
		return strings.TrimSpace(out.String()), fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out.String()), nil
}

// write writes a file of the service, and creates its directories. It refuses to replace a file that Sluice has not
// written.
func write(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && !strings.Contains(string(old), mark) {
		return fmt.Errorf("%w: %s", ErrForeign, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sluice-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o600), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// remove removes a file that Sluice has written. It returns false if there is none.
func remove(path string) (bool, error) {
	old, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !strings.Contains(string(old), mark):
		return false, fmt.Errorf("%w: %s", ErrForeign, path)
	}
	return true, os.Remove(path)
}

// installed reports whether a file exists that Sluice has written.
func installed(path string) bool {
	old, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(old), mark)
}

// plain refuses text with line breaks or NUL, which cannot be part of a line.
func plain(texts ...string) error {
	for _, t := range texts {
		if strings.ContainsAny(t, "\n\r\x00") {
			return fmt.Errorf("%.80q has a line break", t)
		}
	}
	return nil
}
