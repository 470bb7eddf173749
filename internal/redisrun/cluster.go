package redisrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	slots     = 16384
	mostNodes = 16

	// A node that is silent for this long makes the cluster fail. The default of Redis is 15 s. This is short for
	// tests and long enough for a busy machine.
	nodeTimeout = "cluster-node-timeout 2000"
)

// Cluster is a Redis Cluster of masters.
type Cluster struct {
	nodes []*Server
	ids   []string
}

// StartCluster starts n masters that share the slots evenly, in order, and waits until all of them report a healthy
// cluster. Redis takes two seconds for that. The options apply to every node; the port must be 0.
func StartCluster(n int, opts Options) (*Cluster, error) {
	if n < 1 || n > mostNodes {
		return nil, fmt.Errorf("a cluster of %d: must be 1 to %d nodes", n, mostNodes)
	}
	if opts.Port != 0 {
		return nil, errors.New("a cluster takes its ports itself: leave Options.Port 0")
	}
	opts.Lines = append([]string{
		"cluster-enabled yes",
		"cluster-config-file nodes.conf",
		"cluster-announce-ip " + loopback,
		nodeTimeout,
	}, opts.Lines...)

	c := &Cluster{nodes: make([]*Server, n), ids: make([]string, n)}
	err := together(c.nodes, func(i int, _ *Server) (err error) {
		c.nodes[i], err = Start(opts)
		return err
	})
	if err == nil {
		err = c.join()
	}
	if err == nil {
		err = c.WaitOK()
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// join assigns the slots and introduces the nodes to each other.
func (c *Cluster) join() error {
	n := len(c.nodes)
	ctx := context.Background()
	for i, s := range c.nodes {
		id, err := s.Do(ctx, "CLUSTER", "MYID")
		if err != nil {
			return fmt.Errorf("join the cluster: %w", err)
		}
		c.ids[i] = id
		// ADDSLOTSRANGE needs Redis 7.
		add := []string{"CLUSTER", "ADDSLOTS"}
		for slot := slots * i / n; slot < slots*(i+1)/n; slot++ {
			add = append(add, itoa(slot))
		}
		steps := [][]string{add, {"CLUSTER", "SET-CONFIG-EPOCH", itoa(i + 1)}}
		for _, other := range c.nodes[:i] {
			steps = append(steps, []string{"CLUSTER", "MEET", loopback, itoa(other.port)})
		}
		for _, step := range steps {
			if _, err := s.Do(ctx, step...); err != nil {
				return fmt.Errorf("join the cluster: %s: %w", step[1], err)
			}
		}
	}
	return nil
}

// WaitOK waits until every node sees every other and reports a healthy cluster, for example after a restart of a
// node.
func (c *Cluster) WaitOK() error {
	return awaitAll("the cluster does not agree", c.nodes, func(s *Server) error {
		ctx := context.Background()
		info, err := s.Do(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if err := want(s, info, "cluster_state", "ok"); err != nil {
			return err
		}
		nodes, err := s.Do(ctx, "CLUSTER", "NODES")
		if err != nil {
			return err
		}
		connected := 0
		for line := range strings.Lines(nodes) {
			// id, address, flags, master, ping, pong, epoch, link, slots
			words := strings.Fields(line)
			if len(words) > 7 && words[7] == "connected" && strings.TrimPrefix(words[2], "myself,") == "master" {
				connected++
			}
		}
		if connected != len(c.nodes) {
			return fmt.Errorf("%s sees %d nodes of %d", s.Addr(), connected, len(c.nodes))
		}
		return nil
	})
}

// Nodes returns the servers, in the order of their first slots at the start.
func (c *Cluster) Nodes() []*Server { return append([]*Server(nil), c.nodes...) }

// Addrs returns the host:port of every node.
func (c *Cluster) Addrs() []string { return addrs(c.nodes) }

func addrs(servers []*Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}

// URL returns redis+cluster://a,b,c.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// Stop stops every node.
func (c *Cluster) Stop() error { return stopAll(c.nodes) }

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) (int, error) {
	return anyNode(c, func(s *Server) (int, error) {
		text, err := s.Do(context.Background(), "CLUSTER", "KEYSLOT", key)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(text)
	})
}

// Owner returns the index of the node that serves a slot, according to the first node that answers.
func (c *Cluster) Owner(slot int) (int, error) {
	if slot < 0 || slot >= slots {
		return 0, fmt.Errorf("slot %d: must be 0 to %d", slot, slots-1)
	}
	return anyNode(c, func(s *Server) (int, error) { return c.ownerAt(s, slot) })
}

// Owners returns which node serves a slot, according to each node.
func (c *Cluster) Owners(slot int) (said []string) {
	for _, s := range c.nodes {
		owner, err := c.ownerAt(s, slot)
		if err != nil {
			said = append(said, "("+err.Error()+")")
			continue
		}
		said = append(said, strconv.Itoa(owner))
	}
	return said
}

// ownerAt returns the node that serves a slot, according to s.
func (c *Cluster) ownerAt(s *Server, slot int) (int, error) {
	r, err := s.ask(context.Background(), "CLUSTER", "SLOTS")
	if err != nil {
		return -1, err
	}
	for _, part := range r.list {
		if len(part.list) < 3 || len(part.list[2].list) < 3 { // first, last, [host, port, id]
			return -1, errors.New("CLUSTER SLOTS: an answer of another shape")
		}
		first, err1 := strconv.Atoi(part.list[0].text)
		last, err2 := strconv.Atoi(part.list[1].text)
		if err := errors.Join(err1, err2); err != nil {
			return -1, err
		}
		if slot < first || slot > last {
			continue
		}
		if i := slices.Index(c.ids, part.list[2].list[2].text); i >= 0 {
			return i, nil
		}
	}
	return -1, fmt.Errorf("no node serves slot %d", slot)
}

// anyNode asks the nodes in turn until one answers.
func anyNode(c *Cluster, ask func(*Server) (int, error)) (int, error) {
	var errs []error
	for _, s := range c.nodes {
		n, err := ask(s)
		if err == nil {
			return n, nil
		}
		errs = append(errs, err)
	}
	return -1, errors.Join(errs...)
}
