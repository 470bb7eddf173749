//go:build linux || darwin

package sdk_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// balancer passes connections on, and cuts one on which its server is silent for too long, as load balancers do. spoke is closed when
// a server has said anything.
func balancer(t *testing.T, to string, idle time.Duration) (address string, spoke <-chan struct{}) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := u.Host
	said, once := make(chan struct{}), sync.Once{}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = client.Close() }()
				server, err := net.Dial("tcp", host)
				if err != nil {
					return
				}
				defer func() { _ = server.Close() }()
				all.Go(func() {
					_, _ = io.Copy(server, client)
					_ = server.Close()
				})
				buf := make([]byte, 32<<10)
				for {
					_ = server.SetReadDeadline(time.Now().Add(idle))
					n, err := server.Read(buf)
					if n > 0 {
						once.Do(func() { close(said) })
					}
					if _, failed := client.Write(buf[:n]); err != nil || failed != nil {
						return
					}
				}
			})
		}
	})
	u.Host = listener.Addr().String()
	return u.String(), said
}

// hold pauses the provider, and resumes it when a held client has had its first sign of life and some more time has passed. The client may
// have its answer before the command that resumes has ended: resumed waits for that.
func (r *rig) hold(spoke <-chan struct{}, more time.Duration) (resumed func()) {
	r.sluice("pause", r.provider, "--for", "1h")
	var done sync.WaitGroup
	r.Cleanup(done.Wait)
	done.Go(func() {
		select {
		case <-spoke:
		case <-r.Context().Done():
			return
		}
		time.Sleep(more)
		r.sluice("resume", r.provider)
	})
	return done.Wait
}

// TestHeldStreamArrives: a stream that is held for longer than a load balancer allows silence arrives complete.
func TestHeldStreamArrives(t *testing.T) {
	t.Parallel()
	heldStreams(t, 200*time.Millisecond, 4*time.Second, 6*time.Second)
}

// heldStreams holds streams: signs of life come every so often, and a silence of idle cuts the connection.
func heldStreams(t *testing.T, every, idle, hold time.Duration) {
	for name, c := range map[string]client{"events": anthropic, "chunksUsage": openai, "responseEvents": openai} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, c, setup{resource: fmt.Sprintf("keep_alive: %v\nclient_deadline: 2h", every)})
			without := r.direct(name)
			var spoke <-chan struct{}
			r.gate, spoke = balancer(t, r.gate, idle)
			resumed := r.hold(spoke, hold)
			if with := r.gated(name); with[name].line != without[name].line {
				t.Errorf("through the gate it is\n%s\nand without it\n%s", with[name].line, without[name].line)
			}
			resumed()
		})
	}
}

// TestHeldStreamThatFails: after the first sign of life the status is 200. What the client throws has the provider's error and no
// status, and the client does not send again by itself.
func TestHeldStreamThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]client{"insteadOfStream": anthropic, "insteadOfChunks": openai, "insteadOfResponse": openai} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, c, setup{resource: "keep_alive: 200ms\nclient_deadline: 2h"})
			var spoke <-chan struct{}
			r.gate, spoke = balancer(t, r.gate, time.Minute)
			resumed := r.hold(spoke, 0)
			e := failure(t, r.gated(name), name)
			resumed()
			if e.Class != "APIError" || e.Status != 0 || e.Type == "" {
				t.Errorf("%+v", e)
			}
			if s := r.stats(); s.Arrived != 1 {
				t.Errorf("the client sent %d times", s.Arrived)
			}
		})
	}
}
