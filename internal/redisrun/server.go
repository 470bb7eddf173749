// Package redisrun starts real redis-server processes on free loopback ports: a single server, a cluster, or a
// master with its replica and sentinels. Tests, benchmarks and fault campaigns use it. Functions that take a
// testing.TB stop what they started by themselves. On Linux the servers die with the process that started them, even
// if it is killed.
package redisrun

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	loopback = "127.0.0.1"

	startWithin  = time.Minute      // a busy machine may take many seconds
	stopWithin   = 15 * time.Second // then it is killed, and unsaved data is lost
	settleWithin = time.Minute      // for several servers to agree
	pollEvery    = 10 * time.Millisecond

	portTries = 20
)

// Options say how a server differs from a plain one. The zero value is a plain server on a free port, without a
// password and without data on disk.
type Options struct {
	// Lines are added to the configuration file after the lines of this package: "maxmemory 1mb", "appendonly yes",
	// "requirepass x".
	Lines []string
	// Port is chosen at random if it is 0. A cluster also uses port+10000.
	Port int
	// TLS adds a port that speaks TLS. Clients must present a certificate unless Lines say otherwise
	// ("tls-auth-clients no").
	TLS *Certs
	// Binary is the server to start. If it is "", New and its like find one.
	Binary string
	// Env is added to the environment of the process.
	Env []string

	sentinel bool
	// ready runs after each start and restart, for settings that Redis does not keep.
	ready func(*Server) error
}

// Server is one redis-server process. It is safe for concurrent use.
type Server struct {
	opts     Options
	password string
	binary   string
	dir      string
	port     int
	tlsPort  int

	mu      sync.Mutex
	process *process // nil while the server is down
	paused  bool
	stopped bool
}

// Start starts a server and waits until it answers.
func Start(opts Options) (*Server, error) {
	binary := opts.Binary
	if binary == "" {
		var err error
		if binary, err = findBinary(); err != nil {
			return nil, err
		}
	}
	if err := checkLines(opts.Lines); err != nil {
		return nil, err
	}
	var err error
	for range portTries {
		s := &Server{opts: opts, binary: binary, password: passwordIn(opts.Lines)}
		err = s.create()
		if err == nil {
			return s, nil
		}
		// Another process took the port. A requested port is not replaced.
		if opts.Port != 0 || !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
	return nil, err
}

// create takes ports, creates the directory and starts the process. If it fails it cleans up.
func (s *Server) create() (err error) {
	defer func() {
		if err != nil {
			_ = s.remove()
		}
	}()
	if s.port, err = takePort(s.opts.Port); err != nil {
		return err
	}
	if s.opts.TLS != nil {
		if s.tlsPort, err = takePort(0); err != nil {
			return err
		}
	}
	if s.dir, err = os.MkdirTemp("", "sluice-redis-"); err != nil {
		return err
	}
	text, err := s.config()
	if err != nil {
		return err
	}
	// It may contain a password.
	if err = os.WriteFile(filepath.Join(s.dir, configFile), []byte(text), 0o600); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launch()
}

// launch starts the process and waits until it answers. The caller holds s.mu.
func (s *Server) launch() error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own
	from, err := log.Seek(0, 2)
	if err != nil {
		return err
	}
	args := []string{configFile}
	if s.opts.sentinel {
		args = append(args, "--sentinel")
	}
	p, err := launch(s.binary, args, s.dir, log, s.opts.Env)
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(s.binary), err)
	}
	err = s.answers(p)
	if err == nil && s.opts.ready != nil {
		err = s.opts.ready(s)
	}
	if err != nil {
		p.kill()
		<-p.done
		said := tail(s.logPath(), from)
		if strings.Contains(said, "Address already in use") {
			err = errPortTaken
		}
		return fmt.Errorf("redis-server on %s did not start: %w; the end of its log:\n%s", s.Addr(), err, said)
	}
	s.process, s.paused = p, false
	return nil
}

// answers waits until this process answers PING. Another server may have taken the port.
func (s *Server) answers(p *process) error {
	return await(startWithin, "it does not answer", func() (bool, error) {
		select {
		case <-p.done:
			return true, errors.New("it exited: " + p.ended())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		info, err := s.Do(ctx, "INFO", "server")
		if err != nil {
			return false, err
		}
		if pid := field(info, "process_id"); pid != strconv.Itoa(p.pid) {
			return true, fmt.Errorf("%w by the process %s", errPortTaken, pid)
		}
		// Redis refuses commands while it loads its data.
		_, err = s.Do(ctx, "PING")
		return false, err
	})
}

// Addr returns host:port.
func (s *Server) Addr() string { return net.JoinHostPort(loopback, strconv.Itoa(s.port)) }

// URL returns redis://host:port, without a password.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// TLSAddr returns host:port of the TLS port, or "" if there is none.
func (s *Server) TLSAddr() string {
	if s.tlsPort == 0 {
		return ""
	}
	return net.JoinHostPort(loopback, strconv.Itoa(s.tlsPort))
}

// Pid returns the id of the running process, or 0 while it is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return 0
	}
	return s.process.pid
}

// Log returns the end of the server's log.
func (s *Server) Log() string { return tail(s.logPath(), 0) }

func (s *Server) logPath() string { return filepath.Join(s.dir, "redis.log") }

// running reports whether the process is alive. The caller holds s.mu.
func (s *Server) running() bool {
	if s.process == nil {
		return false
	}
	select {
	case <-s.process.done:
		return false
	default:
		return true
	}
}

// up reports whether the process is alive and not paused.
func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running() && !s.paused
}

// Stop ends the process, by force if necessary, and removes its files. It returns an error if the process had
// already ended on its own, with an error. A stopped server stays stopped; stopping it again does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	var err error
	if s.process != nil && !s.running() && s.process.failed() {
		err = fmt.Errorf("redis-server on %s had ended: %s; the end of its log:\n%s", s.Addr(), s.process.ended(), s.Log())
	}
	s.terminate()
	return errors.Join(err, s.remove())
}

// terminate asks the process to end, and kills it if it does not. The caller holds s.mu.
func (s *Server) terminate() {
	if s.running() {
		s.process.term()
		timer := time.NewTimer(stopWithin)
		defer timer.Stop()
		select {
		case <-s.process.done:
		case <-timer.C:
			s.process.kill()
			<-s.process.done
		}
	}
	s.process, s.paused = nil, false
}

func (s *Server) remove() error {
	givePort(s.port)
	givePort(s.tlsPort)
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// Kill ends the process like kill -9 and returns when it is gone. It keeps the directory and the port, for Restart.
// Killing a server that is down does nothing.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		s.process.kill()
		<-s.process.done
	}
	s.process, s.paused = nil, false
	return nil
}

// Restart starts the server again on the same port and directory, and waits until it answers. A running server is
// asked to end first, so that it saves what it is configured to save.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return fmt.Errorf("restart redis-server on %s: it was stopped, start another one", s.Addr())
	}
	s.terminate()
	return s.launch()
}

// Pause stops the process like SIGSTOP: the kernel still accepts connections and bytes for it, but nothing answers.
// It returns when the process has stopped.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("pause redis-server on %s: it is down", s.Addr())
	}
	if s.paused {
		return nil
	}
	if err := s.process.pause(); err != nil {
		return fmt.Errorf("pause redis-server on %s: %w", s.Addr(), err)
	}
	s.paused = true
	return nil
}

// Resume ends a Pause.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return fmt.Errorf("resume redis-server on %s: it is down", s.Addr())
	}
	if err := s.process.resume(); err != nil {
		return fmt.Errorf("resume redis-server on %s: %w", s.Addr(), err)
	}
	s.paused = false
	return nil
}

// CPU returns the processor time, user and system, that the process has used since it started. It asks the server,
// which costs a few microseconds.
func (s *Server) CPU() (time.Duration, error) {
	info, err := s.Do(context.Background(), "INFO", "cpu")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		d, err := time.ParseDuration(field(info, name) + "s")
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s: %w", name, err)
		}
		total += d
	}
	return total, nil
}
