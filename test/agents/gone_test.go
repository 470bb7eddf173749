//go:build linux || darwin

package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// within is how long whoever comes next may wait for what the dead had. It is 15 s, and more here for a machine that is busy.
// The tickets would live for ten minutes.
const within = "40s"

// bare is a rig without a daemon of its own.
func bare(t *testing.T, store, config string) *rig {
	t.Helper()
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, home: t.TempDir()}
	if store == "" {
		store = "file:" + filepath.Join(r.home, "state")
	}
	if err := os.WriteFile(filepath.Join(r.home, "sluice.yaml"), []byte("store: "+store+"\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// onStores runs a test on the stores that outlive a process.
func onStores(t *testing.T, test func(t *testing.T, store string)) {
	t.Helper()
	t.Run("file", func(t *testing.T) { t.Parallel(); test(t, "") })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, redisrun.New(t).URL()+"?timeout=20s") })
}

// daemonTo starts a daemon that will be killed, and returns where it listens.
func (r *rig) daemonTo(t *testing.T) (*process, string) {
	t.Helper()
	r.T = t
	out, err := os.Create(filepath.Join(r.home, "listen"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &process{rig: r, cmd: r.command("serve", "--listen", "127.0.0.1:0", "--json"), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(p.kill)
	var said struct{ Listen []string }
	r.until("the daemon listens", func() bool {
		text, _ := os.ReadFile(out.Name())
		line, _, whole := bytes.Cut(text, []byte("\n"))
		return whole && json.Unmarshal(line, &said) == nil && len(said.Listen) > 0
	})
	return p, said.Listen[0]
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.done
}

// A daemon that is killed takes its eight places with it for seconds, not for the ten minutes that a ticket lives. It has no share
// for when Redis is away: the others leave that alone until its lease ends.
func TestPlacesOfAKilledDaemonComeBack(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		arrived, leave := make(chan struct{}, 16), make(chan struct{})
		upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			select {
			case <-leave:
			case <-r.Context().Done():
			}
		}))
		defer upstream.Close()
		defer close(leave)
		r := bare(t, store, "on_store_failure: closed\nresources:\n  api:\n    upstream: "+upstream.URL+"\n    limits: [{name: places, concurrency: 8}]\n")
		daemon, url := r.daemonTo(t)
		var asking sync.WaitGroup
		defer asking.Wait()
		for range 8 {
			asking.Go(func() {
				if resp, err := client().Get(url + "/api/x"); err == nil {
					_ = resp.Body.Close()
				}
			})
		}
		for range 8 {
			select {
			case <-arrived:
			case <-time.After(patience):
				t.Fatal("the requests do not arrive")
			}
		}
		r.sluice(75, nil, "acquire", "api", "--wait", "0")
		daemon.kill()
		began := time.Now()
		for range 8 {
			r.sluice(0, nil, "acquire", "api", "--hold", "--wait", within)
		}
		t.Logf("eight places after %v", time.Since(began).Round(time.Millisecond))
		r.sluice(75, nil, "acquire", "api", "--wait", "0")
	})
}

// What thirty killed processes had of a short window comes back: the rate is what it was.
func TestAWindowHeldByKilledProcessesComesBack(t *testing.T) {
	onStores(t, func(t *testing.T, store string) {
		r := bare(t, store, "on_store_failure: closed\nresources:\n  api:\n    limits: [{name: burst, size: 10/3s}]\n")
		var holders []*process
		for i := range 10 {
			holders = append(holders, r.start("run", "--agent", fmt.Sprint("a", i), "--resource", "api", "--no-gate", "--", "sleep", "600"))
		}
		var status struct {
			Resources []struct {
				InFlight int `json:"in_flight"`
			}
		}
		r.until("all hold a ticket", func() bool {
			r.sluice(0, &status, "status", "--json")
			return len(status.Resources) > 0 && status.Resources[0].InFlight == 10
		})
		for _, p := range holders {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.done
		}
		began := time.Now()
		for range 10 {
			r.sluice(0, nil, "acquire", "api", "--wait", within)
		}
		t.Logf("10 grants after %v", time.Since(began).Round(time.Millisecond))
	})
}

// The same for processes that use a daemon's store: the daemon lives, and hears nothing of them any more.
func TestPlacesOfKilledCallersOfADaemonComeBack(t *testing.T) {
	t.Parallel()
	r := bare(t, "", "resources:\n  api:\n    limits: [{name: places, concurrency: 2}]\n")
	_, url := r.daemonTo(t)
	holder := r.start("run", "--store", url, "--resource", "api", "--no-gate", "--cost", "requests=2", "--", "sleep", "600")
	var status struct {
		Resources []struct {
			InFlight int `json:"in_flight"`
		}
	}
	r.until("it holds its ticket", func() bool {
		r.sluice(0, &status, "status", "--json", "--store", url)
		return len(status.Resources) > 0 && status.Resources[0].InFlight == 1
	})
	_ = syscall.Kill(-holder.cmd.Process.Pid, syscall.SIGKILL)
	<-holder.done
	began := time.Now()
	r.sluice(0, nil, "acquire", "api", "--store", url, "--wait", within)
	t.Logf("a place after %v", time.Since(began).Round(time.Millisecond))
}

// A process that stands still is not gone: its request is still on its way or being answered. And a ticket that was taken to
// be held outlives the command that took it.
func TestAStoppedHolderAndAHeldTicketKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	r := bare(t, "", "resources:\n  api:\n    limits: [{name: places, concurrency: 2}]\n")
	holder := r.start("run", "--resource", "api", "--no-gate", "--", "sleep", "600")
	var held struct{ Ticket string }
	r.sluice(0, &held, "acquire", "api", "--hold", "--json", "--wait", within)
	r.until("both are held", func() bool {
		var status struct {
			Resources []struct {
				InFlight int `json:"in_flight"`
			}
		}
		r.sluice(0, &status, "status", "--json")
		return len(status.Resources) > 0 && status.Resources[0].InFlight == 2
	})
	if err := holder.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r.sluice(75, nil, "acquire", "api", "--wait", "14s")
	r.sluice(0, nil, "release", strings.TrimSpace(held.Ticket))
	r.sluice(0, nil, "acquire", "api", "--wait", within)
}
