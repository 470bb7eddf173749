//go:build !unix && !windows

package statedir

import "os"

// Check leaves the rights of directories to the system.
func Check(string) error { return nil }

// OpenNoLink opens a file as [os.OpenFile] does.
func OpenNoLink(name string, flags int) (*os.File, error) { return os.OpenFile(name, flags, 0o600) }

func makeAll(dir string) error { return os.MkdirAll(dir, 0o700) }
