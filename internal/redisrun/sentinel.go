package redisrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MasterName is the name that the sentinels use for the master.
const MasterName = "mymaster"

const (
	sentinels = 3
	quorum    = 2
)

// probeKey is deleted to test whether a server takes writes. It never exists, so nothing changes.
const probeKey = "redisrun:probe"

// Sentinel is a master with one replica, watched by three sentinels of which two must agree.
type Sentinel struct {
	nodes     []*Server // the first was the master at the start
	sentinels []*Server
}

// StartSentinel starts the servers and waits until the replica is in sync and every sentinel knows all others. A
// dead master is replaced after about two seconds, or six if the sentinels do not agree at once on a leader. The
// options apply to the master and the replica; the port must be 0.
func StartSentinel(opts Options) (*Sentinel, error) {
	if opts.Port != 0 {
		return nil, errors.New("a sentinel set-up takes its ports itself: leave Options.Port 0")
	}
	s := &Sentinel{}
	err := s.start(opts)
	if err == nil {
		err = s.acquaint()
	}
	if err == nil {
		err = s.WaitReplica()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Sentinel) start(opts Options) error {
	password := passwordIn(opts.Lines)
	if password != "" { // each of the two may become the other's replica
		opts.Lines = append([]string{"masterauth " + quote(password)}, opts.Lines...)
	}
	master, err := Start(opts)
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, master)
	opts.Lines = append([]string{fmt.Sprintf("replicaof %s %d", loopback, master.port)}, opts.Lines...)
	replica, err := Start(opts)
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, replica)

	// Sentinels learn of a replica when they first ask its master, and otherwise much later.
	if err := await(settleWithin, "the replica is not in sync", func() (bool, error) { return false, inSync(master, replica) }); err != nil {
		return err
	}
	watch := Options{sentinel: true, ready: hurry, Lines: []string{
		fmt.Sprintf("sentinel monitor %s %s %d %d", MasterName, loopback, master.port, quorum),
		"sentinel down-after-milliseconds " + MasterName + " 1000",
		"sentinel failover-timeout " + MasterName + " 2000",
	}}
	if password != "" {
		watch.Lines = append(watch.Lines, "sentinel auth-pass "+MasterName+" "+quote(password))
	}
	s.sentinels = make([]*Server, sentinels)
	return together(s.sentinels, func(i int, _ *Server) (err error) {
		s.sentinels[i], err = Start(watch)
		return err
	})
}

// Keep stops the sentinels from replacing a master that is merely slow, for tests in which no server dies. A busy
// machine can delay a server by more than the second after which it counts as dead.
func (s *Sentinel) Keep() error {
	return together(s.sentinels, func(_ int, w *Server) error {
		_, err := w.Do(context.Background(), "SENTINEL", "SET", MasterName, "down-after-milliseconds", "600000")
		return err
	})
}

// hurry makes a sentinel check and publish more often than every second or ten seconds. A restart resets this, so it
// is repeated after each.
//
// A sentinel waits four publish periods before it demotes a server that calls itself master. During a failover that
// must be well above the second that the leader takes to see the promotion. Otherwise the other sentinels undo it.
func hurry(s *Server) error {
	return tune(s, "INFO-PERIOD", "200", "PING-PERIOD", "200", "ASK-PERIOD", "200", "PUBLISH-PERIOD", "800",
		"TILT-PERIOD", "2000", "MIN-LINK-RECONNECT-PERIOD", "500")
}

// hurryMore is for the time after a failover, when all sentinels agree.
func hurryMore(s *Server) error { return tune(s, "PUBLISH-PERIOD", "100") }

func tune(s *Server, settings ...string) error {
	_, err := s.Do(context.Background(), append([]string{"SENTINEL", "DEBUG"}, settings...)...)
	if _, ok := errors.AsType[ReplyError](err); ok { // Redis before version 7: slower, but it works
		return nil
	}
	return err
}

// acquaint waits until every sentinel knows all others. They learn of each other when they publish.
func (s *Sentinel) acquaint() error {
	if err := s.each(hurryMore); err != nil {
		return err
	}
	if err := awaitAll("the sentinels do not know each other", s.sentinels, knowsOthers); err != nil {
		return err
	}
	return s.each(hurry)
}

// each calls do with every running sentinel.
func (s *Sentinel) each(do func(*Server) error) error {
	for _, one := range s.sentinels {
		if !one.up() {
			continue
		}
		if err := do(one); err != nil {
			return err
		}
	}
	return nil
}

// knowsOthers returns what a sentinel does not know yet.
func knowsOthers(s *Server) error {
	r, err := s.ask(context.Background(), "SENTINEL", "MASTER", MasterName)
	if err != nil {
		return err
	}
	facts := pairs(r)
	for name, value := range map[string]string{
		"flags":               "master",
		"num-slaves":          "1",
		"num-other-sentinels": itoa(sentinels - 1),
	} {
		if facts[name] != value {
			return fmt.Errorf("the sentinel %s says %s %q, not %q", s.Addr(), name, facts[name], value)
		}
	}
	return nil
}

// pairs reads a list of names and values.
func pairs(r reply) map[string]string {
	facts := map[string]string{}
	for pair := range slices.Chunk(r.list, 2) {
		if len(pair) == 2 {
			facts[pair[0].text] = pair[1].text
		}
	}
	return facts
}

// URL returns redis+sentinel://s1,s2,s3/mymaster.
func (s *Sentinel) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + MasterName
}

// Addrs returns the host:port of every sentinel.
func (s *Sentinel) Addrs() []string { return addrs(s.sentinels) }

// Sentinels returns the sentinels.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Nodes returns the two watched servers, whichever is the master.
func (s *Sentinel) Nodes() []*Server { return slices.Clone(s.nodes) }

// Stop stops all servers, the sentinels first so that they see no failure.
func (s *Sentinel) Stop() error {
	return errors.Join(stopAll(s.sentinels), stopAll(s.nodes))
}
