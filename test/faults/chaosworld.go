package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// world is the set-up of one plan: a provider, a store, gates and agents.
type world struct {
	ctx      context.Context
	dir      string
	plan     chaosPlan
	program  string
	provider *liar
	gates    []*daemonProcess
	load     *chaosLoad

	// Parts of the store; nil or empty if the store has none.
	server *redisrun.Server
	relay  *relay
	toxics []*toxic
	daemon *daemonProcess

	clock *stepClock // the wall clock of the gates and the daemon; nil: the right one

	store, links, configs, bounds, clocks sync.Mutex // each serializes the faults of one group

	mu     sync.Mutex
	broken []string // broken rules about sent requests and leftovers
	tardy  []string // broken timing rules; they do not count if the machine was too busy
}

// chaosConfig is the configuration of the gates. The guard is strict, because faults stop processes for longer than the
// slack. With a strict guard, the request of a killed process may be charged until its ticket expires: before the fleet must
// be at full use ([fullWithin]), but after nothing may be left ([emptyWithin]), so that a lost ticket is noticed.
const chaosConfig = `store: %s
presets: off
leases: {renew: 1s, expire: 6s}
retry: {attempts: 2, deadline: 5s, base: 100ms, cap: 500ms}
retry_windows: {}
resources:
  api:
    upstream: http://%s
    provider: generic
    guard: strict
    ttl: 45s
    client_deadline: 4s
    backoff: {start: 1s, cap: 2s}
    limits: [{name: window, size: %d/2s}, {name: inflight, concurrency: %d}]
`

// broke records that a rule was broken.
func (w *world) broke(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// slow records that something took too long.
func (w *world) slow(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tardy = append(w.tardy, fmt.Sprintf(format, args...))
}

func (w *world) sleep(d time.Duration) { pause(w.ctx, d) }

// newWorld starts everything. If it fails, the caller must still call stop.
func newWorld(ctx context.Context, p chaosPlan, dir, program, previous string) (w *world, err error) {
	w = &world{ctx: ctx, dir: dir, plan: p, program: program}
	if w.provider, err = startLiar(p.seed); err != nil {
		return w, err
	}
	if p.setsClock() {
		if w.clock, err = newStepClock(filepath.Join(dir, "clock")); err != nil {
			return w, err
		}
	}
	if err := w.startStore(); err != nil {
		return w, err
	}
	for i := range p.gates() {
		if err := w.writeConfig(w.gateConfig(i), w.storeURL(i), chaosSize, ""); err != nil {
			return w, err
		}
		with := program
		if i < p.old {
			with = previous
		}
		w.gates = append(w.gates, newDaemonProcess(fmt.Sprintf("gate %d", i), with, "unix:"+filepath.Join(dir, fmt.Sprintf("g%d.sock", i)), w.gateConfig(i), w.env(), w.broke))
	}
	for _, g := range w.gates {
		if !w.until(readyWithin, g.ready) {
			return w, fmt.Errorf("%s was not ready after %v", g.describe(), readyWithin)
		}
	}
	return w, ctx.Err()
}

func (w *world) startStore() (err error) {
	switch w.plan.store {
	case onRedis:
		var o redisrun.Options
		if w.plan.keeps {
			o.Lines = []string{"appendonly yes", "appendfsync always"}
		}
		if w.server, err = redisrun.Start(o); err != nil {
			return err
		}
		if w.relay, err = startRelay(w.server.Addr()); err != nil {
			return err
		}
		return w.startToxics(w.relay.addr())
	case onDaemon:
		listen, err := freeAddress()
		if err != nil {
			return err
		}
		if err := w.writeConfig(w.daemonConfig(), w.fileURL(), chaosSize, ""); err != nil {
			return err
		}
		w.daemon = newDaemonProcess("daemon", w.program, listen, w.daemonConfig(), w.env(), w.broke)
		if !w.until(readyWithin, w.daemon.ready) {
			return fmt.Errorf("the daemon was not ready after %v", readyWithin)
		}
		return w.startToxics(listen)
	}
	return nil
}

// startToxics starts two proxies to the store. Gates with even numbers use the first, the others the second.
func (w *world) startToxics(upstream string) error {
	for range 2 {
		t, err := startToxic(upstream)
		if err != nil {
			return err
		}
		w.toxics = append(w.toxics, t)
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (w *world) fileURL() string         { return "file:" + filepath.Join(w.dir, "state") }
func (w *world) daemonConfig() string    { return filepath.Join(w.dir, "daemon.yaml") }
func (w *world) gateConfig(i int) string { return filepath.Join(w.dir, fmt.Sprintf("g%d.yaml", i)) }
func (w *world) env() []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "XDG_STATE_HOME=" + filepath.Join(w.dir, "home")}
	if w.clock != nil {
		env = append(env, w.clock.env())
	}
	return env
}

func (w *world) storeURL(gate int) string {
	switch w.plan.store {
	case onRedis:
		return "redis://" + w.toxics[gate%2].addr() + "?prefix=" + prefix
	case onDaemon:
		return "http://" + w.toxics[gate%2].addr()
	case onMemory:
		return "mem:"
	}
	return w.fileURL()
}

// writeConfig replaces a configuration file atomically, so that a starting gate never reads half of it.
func (w *world) writeConfig(path, url string, size int, more string) error {
	if err := os.WriteFile(path+".new", fmt.Appendf(nil, chaosConfig+"%s", url, w.provider.addr, size, chaosPlaces, more), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// reload makes all gates and the daemon load another configuration.
func (w *world) reload(size int, more string) error {
	var errs []error
	for i := range w.gates {
		errs = append(errs, w.writeConfig(w.gateConfig(i), w.storeURL(i), size, more))
	}
	if w.daemon != nil {
		errs = append(errs, w.writeConfig(w.daemonConfig(), w.fileURL(), size, more))
	}
	for _, d := range w.all() {
		d.signal(syscall.SIGHUP)
	}
	return errors.Join(errs...)
}

// reloadAgain reloads every process until that succeeds, as an operator would. A fault may have made a reload fail, and
// then the previous configuration is still in force.
func (w *world) reloadAgain() {
	if !w.plan.any(func(k *chaosKind) bool { return k.name == reloadKind }) {
		return
	}
	for _, d := range w.all() {
		said := errors.New("it was not asked")
		if !w.until(fullWithin, func() bool { said = d.reload(); return said == nil }) && w.ctx.Err() == nil {
			w.slow("%s cannot be reloaded %v after the last fault: %v", d.name, fullWithin, said)
		}
	}
}

// all returns all sluice processes.
func (w *world) all() []*daemonProcess {
	if w.daemon == nil {
		return w.gates
	}
	return append([]*daemonProcess{w.daemon}, w.gates...)
}

// freeze stops a process with SIGSTOP for a time.
func (w *world) freeze(d *daemonProcess, lasts time.Duration) error {
	d.signal(syscall.SIGSTOP)
	w.sleep(lasts)
	d.signal(syscall.SIGCONT)
	return nil
}

// bound limits a resource of processes to what they use now, for a time.
func (w *world) bound(lasts time.Duration, resource int, some ...*daemonProcess) error {
	w.bounds.Lock() // one fault at a time, because undo restores the limits found at the start
	defer w.bounds.Unlock()
	var undo []func()
	for _, d := range some {
		pid := d.pid()
		if pid == 0 {
			continue
		}
		if resource == limitMemory {
			d.mayEnd()
		}
		if u, err := limitProcess(pid, resource); err == nil { // the process may have ended just now
			undo = append(undo, u)
		}
	}
	w.sleep(lasts)
	for _, u := range undo {
		u()
	}
	return nil
}

// play runs the steps of the plan concurrently, each at its time.
func (w *world) play() error {
	begin := time.Now()
	errs := make([]error, len(w.plan.steps))
	var steps sync.WaitGroup
	for i, s := range w.plan.steps {
		steps.Go(func() {
			w.sleep(time.Until(begin.Add(s.at)))
			if err := s.kind.do(w, s); err != nil {
				errs[i] = fmt.Errorf("%s: %w", s.kind.name, err)
			}
		})
	}
	steps.Wait()
	return errors.Join(errs...)
}

// until calls is until it returns true or the time is over. It reports whether is returned true.
func (w *world) until(within time.Duration, is func() bool) bool {
	for end := time.Now().Add(within); w.ctx.Err() == nil; w.sleep(50 * time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
	return false
}

// stop ends everything and returns what failed.
func (w *world) stop() error {
	var errs []error
	if w.load != nil {
		w.load.stop()
	}
	for _, g := range w.gates {
		if err := g.stop(); err != nil {
			w.slow("%v", err)
		}
	}
	if w.daemon != nil {
		if err := w.daemon.stop(); err != nil {
			w.slow("%v", err)
		}
	}
	for _, t := range w.toxics {
		t.stop()
	}
	if w.relay != nil {
		errs = append(errs, w.relay.stop())
	}
	if w.server != nil {
		errs = append(errs, w.server.Stop())
	}
	if w.clock != nil {
		errs = append(errs, w.clock.close())
	}
	if w.provider != nil {
		w.provider.stop()
	}
	return errors.Join(errs...)
}
