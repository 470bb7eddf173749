//go:build slow && linux

package hosts

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
)

const (
	roleVar = "SLUICE_HOSTS_AGENT" // the name of an agent: this process is it, and no test
	baseVar = "SLUICE_HOSTS_URL"   // where it sends to
	callers = 3                    // of an agent: some request always waits
)

// sluiceBinary is this version.
var sluiceBinary string

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVar); name != "" {
		beAgent(name)
		return
	}
	os.Exit(built.Main(m, &sluiceBinary))
}

// beAgent sends without a pause until it is told to end. It knows nothing of Sluice but an address.
func beAgent(name string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	// A request that waits in Redis when its host is cut off stays there. One that is sent again is let go within the share.
	client := &http.Client{Timeout: 5 * time.Second}
	url := os.Getenv(baseVar) + "/work"
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if !send(ctx, client, url, name) {
					select { // the gate is not there, or says that it is not its turn
					case <-ctx.Done():
					case <-time.After(200 * time.Millisecond):
					}
				}
			}
		})
	}
	wg.Wait()
}

func send(ctx context.Context, client *http.Client, url, agent string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Agent-Id", agent)
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the status says all
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
