//go:build !unix && !windows

package statedir

import "os"

// Check does nothing: the system is responsible for permissions.
func Check(string) error { return nil }

// OpenNoLink opens a file as [os.OpenFile] does.
func OpenNoLink(name string, flags int) (*os.File, error) { return os.OpenFile(name, flags, 0o600) }

func makeAll(dir string) error { return os.MkdirAll(dir, 0o700) }
