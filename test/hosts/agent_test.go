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
	roleVar = "SLUICE_HOSTS_AGENT" // name of the agent, if this process is an agent and not the test
	baseVar = "SLUICE_HOSTS_URL"   // URL that it sends to
	callers = 3                    // concurrent callers of an agent, so that a request always waits
)

// sluiceBinary is the path of this version's binary.
var sluiceBinary string

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVar); name != "" {
		beAgent(name)
		return
	}
	os.Exit(built.Main(m, &sluiceBinary))
}

// beAgent sends requests without a pause until it is stopped. It knows only an address, and nothing of Sluice.
func beAgent(name string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	// The timeout is short, because a request that waits in Redis stays there when its host is cut off. A retry is
	// granted from the host's share.
	client := &http.Client{Timeout: 5 * time.Second}
	url := os.Getenv(baseVar) + "/work"
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if !send(ctx, client, url, name) {
					select { // the gate is down or has refused the request
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
	_, _ = io.Copy(io.Discard, resp.Body) // only the status matters
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
