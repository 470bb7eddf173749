package redisrun

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Master returns the master according to the first sentinel that answers, or nil if none answers.
func (s *Sentinel) Master() *Server {
	for _, one := range s.sentinels {
		if master, err := s.masterOf(one); err == nil {
			return master
		}
	}
	return nil
}

func (s *Sentinel) masterOf(sentinel *Server) (*Server, error) {
	r, err := sentinel.ask(context.Background(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
	if err != nil {
		return nil, err
	}
	if len(r.list) == 2 {
		for _, node := range s.nodes {
			if itoa(node.port) == r.list[1].text {
				return node, nil
			}
		}
	}
	return nil, fmt.Errorf("the sentinel %s names a master that nobody knows", sentinel.Addr())
}

var errNoSentinel = errors.New("no sentinel is running")

// agreed returns the master that all running sentinels name.
func (s *Sentinel) agreed() (master *Server, err error) {
	err = s.each(func(one *Server) error {
		named, err := s.masterOf(one)
		if err != nil {
			return err
		}
		if master != nil && master != named {
			return errors.New("the sentinels do not agree")
		}
		master = named
		return nil
	})
	if err == nil && master == nil {
		err = errNoSentinel
	}
	return master, err
}

// WaitMaster waits until all running sentinels name the same master and it takes writes. It must not be old; nil
// accepts any master. A master also counts if only min-replicas-to-write keeps it from taking writes. It returns the
// master.
func (s *Sentinel) WaitMaster(old *Server) (master *Server, err error) {
	err = await(settleWithin, "no master that takes writes", func() (bool, error) {
		var err error
		master, err = s.agreed()
		if err != nil {
			return errors.Is(err, errNoSentinel), err
		}
		if master == old {
			return false, fmt.Errorf("the sentinels still name %s", old.Addr())
		}
		_, err = master.Do(context.Background(), "DEL", probeKey)
		if refused, ok := errors.AsType[ReplyError](err); ok && strings.HasPrefix(string(refused), "NOREPLICAS") {
			return false, nil
		}
		return false, err
	})
	if err != nil {
		return nil, err
	}
	return master, nil
}

// WaitReplica waits until the replica has all data of the master, and every running sentinel sees it. From then on a
// failover can promote it. Call it when both servers run.
func (s *Sentinel) WaitReplica() error {
	hurried := false
	err := await(settleWithin, "the replica is not in sync", func() (bool, error) {
		master, err := s.agreed()
		if err != nil {
			return errors.Is(err, errNoSentinel), err
		}
		if !hurried {
			if err := s.each(hurryMore); err != nil {
				return false, err
			}
			hurried = true
		}
		replica := s.other(master)
		if err := inSync(master, replica); err != nil {
			return false, err
		}
		return false, s.each(func(one *Server) error { return sees(one, replica) })
	})
	return errors.Join(err, s.each(hurry))
}

// sees returns what is wrong with the replica according to a sentinel.
func sees(sentinel, replica *Server) error {
	r, err := sentinel.ask(context.Background(), "SENTINEL", "REPLICAS", MasterName)
	if err != nil {
		return err
	}
	if len(r.list) != 1 {
		return fmt.Errorf("the sentinel %s sees %d replicas, not 1", sentinel.Addr(), len(r.list))
	}
	facts := pairs(r.list[0])
	if facts["port"] != itoa(replica.port) || facts["flags"] != "slave" || facts["master-link-status"] != "ok" {
		return fmt.Errorf("the sentinel %s sees the replica on port %s as %q, its link as %q",
			sentinel.Addr(), facts["port"], facts["flags"], facts["master-link-status"])
	}
	return nil
}

func (s *Sentinel) other(node *Server) *Server {
	if node == s.nodes[0] {
		return s.nodes[1]
	}
	return s.nodes[0]
}

// Failover makes the replica the master while both are alive. It returns when all running sentinels name the new
// master and it takes writes. The old master takes writes for about three more seconds, which are lost, and then
// becomes the replica; WaitReplica waits for that.
func (s *Sentinel) Failover() error {
	if err := s.WaitReplica(); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	old, err := s.agreed()
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	err = await(settleWithin, "failover: refused", func() (bool, error) {
		started := false
		return false, s.each(func(one *Server) error {
			if started {
				return nil
			}
			started = true
			// Refused while an earlier failover is running, or while no replica seems good.
			_, err := one.Do(context.Background(), "SENTINEL", "FAILOVER", MasterName)
			return err
		})
	})
	if err != nil {
		return err
	}
	if _, err := s.WaitMaster(old); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	return nil
}

// inSync returns why the replica does not have all data of its master.
func inSync(master, replica *Server) error {
	ctx := context.Background()
	before, err := master.Do(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	info, err := replica.Do(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	for _, fact := range [][2]string{{"role", "slave"}, {"master_port", itoa(master.port)}, {"master_link_status", "up"}} {
		if err := want(replica, info, fact[0], fact[1]); err != nil {
			return err
		}
	}
	// A master calls a replica online before it sends it what was written during the transfer.
	has, _ := strconv.ParseInt(field(info, "slave_repl_offset"), 10, 64)
	needs, _ := strconv.ParseInt(field(before, "master_repl_offset"), 10, 64)
	if has < needs {
		return fmt.Errorf("%s has replicated %d of %d bytes", replica.Addr(), has, needs)
	}
	info, err = master.Do(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	if !strings.Contains(field(info, "slave0"), "state=online") {
		return fmt.Errorf("%s says its replica is %q, not online", master.Addr(), field(info, "slave0"))
	}
	// Counted once a second, and only if min-replicas-to-write is set.
	if field(info, "min_slaves_good_slaves") == "0" {
		return fmt.Errorf("%s has not counted its replica yet", master.Addr())
	}
	return nil
}
