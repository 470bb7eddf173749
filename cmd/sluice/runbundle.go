package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/proxy/forward"
)

// Bundles are files in the directory for temporary files.
const (
	bundlePattern = "sluice-ca-run-*.pem" // earlier versions wrote others, without a lock
	// bundleYoung is the age below which a bundle is not looked at: its run may not have locked it yet.
	bundleYoung = time.Minute
	// maxSwept bounds the bundles of killed runs that one run removes.
	maxSwept = 100
)

// bundleFile holds the certificates that a command trusts. Its lock says that the run lives.
type bundleFile struct{ f *os.File }

// writeBundle writes the bundle of an authority, and removes those of runs that were killed.
func writeBundle(authority *forward.Authority, notes *slog.Logger) (*bundleFile, error) {
	sweepBundles(os.TempDir(), time.Now())
	text, missing := forward.Bundle(authority, os.Getenv)
	for _, err := range missing {
		notes.Warn("certificates are left out: " + err.Error())
	}
	f, err := os.CreateTemp("", bundlePattern) // 0600
	if err == nil {
		_ = filelock.Try(f, false) // without locks, the bundle of a killed run stays
		if _, err = f.Write(text); err != nil {
			_ = (&bundleFile{f}).remove() // the other error tells more
		}
	}
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "the bundle of certificates could not be written: " + err.Error(), hint: "look at TMPDIR and at the space there"}
	}
	return &bundleFile{f}, nil
}

func (b *bundleFile) name() string { return b.f.Name() }

// remove removes the bundle, if there is one.
func (b *bundleFile) remove() error {
	if b == nil {
		return nil
	}
	return errors.Join(b.f.Close(), os.Remove(b.f.Name()))
}

// sweepBundles removes the bundles of this user's runs that were killed.
func sweepBundles(dir string, now time.Time) {
	names, _ := filepath.Glob(filepath.Join(dir, bundlePattern)) // the pattern is valid
	for _, name := range names[:min(len(names), maxSwept)] {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < bundleYoung {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // another user's
		}
		abandoned := filelock.Try(f, true) == nil
		_ = f.Close() // nothing was written
		if abandoned {
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return // the others will not go either
			}
		}
	}
}
