package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// groupFaults returns the faults of a Redis with replica and sentinels, and of a Redis Cluster.
func groupFaults() []*fault {
	return []*fault{
		{name: "failover", what: "Sentinel promotes the replica while both run, then the old master again", setup: sentinel, loses: true, do: thereAndBack},
		{name: "master-killed", what: "kill -9 of the master; Sentinel makes the replica the master", setup: sentinel, loses: true, do: masterKilled},
		{name: "slot-moved", what: "the slots of all pools move to other nodes of a Cluster, and back", setup: cluster, do: slotsMoved},
		{name: "node-killed", what: "kill -9 of the Cluster node with the rolling pool, restarted empty after 1 s", setup: cluster, loses: true, do: nodeKilled},
	}
}

func thereAndBack(r *rig) error {
	return errors.Join(r.watch.Failover(), r.watch.Failover())
}

func masterKilled(r *rig) error {
	old := r.watch.Master()
	if old == nil {
		return errors.New("no sentinel names a master")
	}
	if err := old.Kill(); err != nil {
		return err
	}
	if _, err := r.watch.WaitMaster(old); err != nil {
		return err
	}
	return old.Restart()
}

// keysOf returns the keys of a pool on a server.
func (r *rig) keysOf(s *redisrun.Server, pool string) ([]string, error) {
	text, err := s.Do(r.ctx, "KEYS", prefix+":{"+pool+"}*")
	if err != nil {
		return nil, err
	}
	keys := strings.Fields(text)
	if len(keys) == 0 {
		return nil, fmt.Errorf("no key of the pool %s is there", pool)
	}
	return keys, nil
}

// slotOf returns the slot of a pool and the index of the node that serves it.
func (r *rig) slotOf(pool string) (slot, owner int, err error) {
	if slot, err = r.nodes.Slot(prefix + ":{" + pool + "}"); err != nil {
		return 0, 0, err
	}
	owner, err = r.nodes.Owner(slot)
	if err == nil { // the node must hold the pool's keys, otherwise the slot is wrong
		_, err = r.keysOf(r.nodes.Nodes()[owner], pool)
	}
	return slot, owner, err
}

// owners lists which node serves each pool, as every node of a Cluster sees it. If the nodes disagree, no client can
// work.
func (r *rig) owners() string {
	if r.nodes == nil {
		return ""
	}
	var b strings.Builder
	for _, pool := range poolNames {
		slot, err := r.nodes.Slot(prefix + ":{" + pool + "}")
		if err != nil {
			return fmt.Sprintf("; the slots are not known: %v", err)
		}
		fmt.Fprintf(&b, "; %s is on", pool)
		for _, name := range r.nodes.Owners(slot) {
			fmt.Fprintf(&b, " %s", name)
		}
	}
	return b.String()
}

// slotsMoved moves the slots away and back. A node that serves a slot again must not use its old state of it.
func slotsMoved(r *rig) error {
	for _, step := range []int{1, 2} {
		owners := map[int]int{}
		for _, pool := range poolNames {
			slot, owner, err := r.slotOf(pool)
			if err != nil {
				return err
			}
			owners[slot] = (owner + step) % 3
			if err := r.nodes.MoveSlot(slot, owners[slot]); err != nil {
				return err
			}
		}
		if err := r.nodes.Settle(owners, 1500*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func nodeKilled(r *rig) error {
	_, owner, err := r.slotOf(poolNames[rolling])
	if err != nil {
		return err
	}
	node := r.nodes.Nodes()[owner]
	if err := node.Kill(); err != nil {
		return err
	}
	return errors.Join(r.sleep(time.Second), node.Restart(), r.nodes.WaitOK())
}
