//go:build linux || darwin

package main

import (
	"os"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// sluiceBinary is the path of the binary to test.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

var watched = sync.OnceValue(func() error { return built.Watch() })
