//go:build !linux && !darwin && !windows

package filestore

import (
	"errors"
	"runtime"

	"github.com/sluicehq/sluice/store"
)

// Open returns an error: this system has no file store.
func Open(dir string) (store.Store, error) {
	return nil, &Error{
		Op: "open", Path: dir, Err: errors.New("there is no file store on " + runtime.GOOS),
		hint: "use --store redis://HOST, or the http:// address of a daemon",
	}
}
