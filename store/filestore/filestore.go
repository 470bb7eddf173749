// Package filestore keeps pools in files, for all processes of one user on one machine: no
// daemon, no server. It is the state machine that all stores share, in memory that the
// processes map, under a kernel lock that dies with its holder.
//
// Every step is first written to a journal and counts only once it is done: one that
// was cut off by kill -9 is undone by the next process, from a copy of the state and the steps
// since. docs/design.md tells how.
//
// Importing it registers the scheme "file:". "file:PATH" is a directory, made if it is
// missing; "file:" is sluice in the user's state directory.
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

// Dir returns the directory that a store's URL names.
func Dir(url string) (string, error) {
	dir, err := statedir.Of(url)
	if err != nil {
		return "", &Error{Op: "find", Path: "the directory", Err: err, hint: "set HOME, or name a directory with --store file:PATH"}
	}
	return dir, nil
}
