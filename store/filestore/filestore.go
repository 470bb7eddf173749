// Package filestore keeps pools in files that all processes of one user on one machine share. It needs no daemon and
// no server. It runs the state machine that all stores share, in memory that the processes map. A kernel lock
// protects it and is released when its holder dies.
//
// Every step is written to a journal first and counts only when it is complete. If kill -9 cuts a step off, the next
// process undoes it: it restores a copy of the state and replays the steps since. docs/design.md explains how.
//
// Importing the package registers the scheme "file:". "file:PATH" is a directory, created if it is missing. "file:"
// is the directory sluice in the user's state directory.
package filestore

import (
	"context"

	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

func init() {
	store.Register("file", func(_ context.Context, url string) (store.Store, error) {
		dir, err := Dir(url)
		if err != nil {
			return nil, err
		}
		return Open(dir)
	})
}

// Dir returns the directory that a store URL names.
func Dir(url string) (string, error) {
	dir, err := statedir.Of(url)
	if err != nil {
		return "", &Error{Op: "find", Path: "the directory", Err: err, hint: "set HOME, or name a directory with --store file:PATH"}
	}
	return dir, nil
}
