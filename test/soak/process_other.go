//go:build !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

func apart() *syscall.SysProcAttr { return nil }

// memory returns an error, because memory is only measured on Linux.
func memory(int) (own, files int64, err error) {
	return 0, 0, errors.New("memory is measured on Linux")
}

func threads(int) int64 { return 0 }

func cpu(int) time.Duration { return 0 }
