//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package ledger

import (
	"context"
	"errors"
	"os"
)

// await: without a lock that dies with its holder, budgets cannot be shared between processes.
func await(context.Context, *os.File) error { return errors.ErrUnsupported }

func unlock(*os.File) {}
