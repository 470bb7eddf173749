//go:build linux || darwin

package clients_test

import (
	"os"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// sluiceBinary is what is served.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

var watched = sync.OnceValue(func() error { return built.Watch("clients") })
