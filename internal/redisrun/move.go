package redisrun

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Move is a slot that is being moved to another node. Until Finish the old owner serves the keys that it still has,
// and answers ASK for the others.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to int
}

// MoveSlot moves a slot with its keys to the node of that index. Clients that ask the old owner afterwards get
// MOVED. It does nothing if the slot is there already.
func (c *Cluster) MoveSlot(slot, to int) error {
	m, err := c.BeginMove(slot, to)
	if err != nil || m == nil {
		return err
	}
	return m.Finish()
}

// BeginMove opens a slot for its move to the node of that index, and moves no key yet. It returns nil if the slot is
// there already.
func (c *Cluster) BeginMove(slot, to int) (*Move, error) {
	if to < 0 || to >= len(c.nodes) {
		return nil, fmt.Errorf("move slot %d to node %d: must be 0 to %d", slot, to, len(c.nodes)-1)
	}
	from, err := c.Owner(slot)
	if err != nil {
		return nil, fmt.Errorf("move slot %d: %w", slot, err)
	}
	if from == to {
		return nil, nil
	}
	m := &Move{cluster: c, slot: slot, from: from, to: to}
	// In this order: the node that clients send ASKING to must expect it.
	if err := m.set(to, "IMPORTING", c.ids[from]); err != nil {
		return nil, err
	}
	if err := m.set(from, "MIGRATING", c.ids[to]); err != nil {
		return nil, err
	}
	return m, nil
}

// Keys moves up to n keys of the slot and returns how many it found.
func (m *Move) Keys(n int) (int, error) {
	from, to := m.cluster.nodes[m.from], m.cluster.nodes[m.to]
	ctx := context.Background()
	r, err := from.ask(ctx, "CLUSTER", "GETKEYSINSLOT", itoa(m.slot), itoa(n))
	if err != nil {
		return 0, m.failed(err)
	}
	if len(r.list) == 0 {
		return 0, nil
	}
	args := []string{"MIGRATE", loopback, itoa(to.port), "", "0", itoa(int(doWithin.Milliseconds()))}
	if to.password != "" {
		args = append(args, "AUTH", to.password)
	}
	args = append(args, "KEYS")
	for _, key := range r.list {
		args = append(args, key.text)
	}
	// NOKEY is not an error: the keys may have expired or been deleted.
	if _, err := from.Do(ctx, args...); err != nil {
		return 0, m.failed(err)
	}
	return len(r.list), nil
}

// Finish moves the remaining keys and tells every node about the new owner. Nodes that are down or paused learn it
// from the others.
func (m *Move) Finish() error {
	for {
		moved, err := m.Keys(100)
		if err != nil {
			return err
		}
		if moved == 0 {
			break
		}
	}
	// The new owner first: until the old one learns of it, it answers ASK. The others would learn it by themselves,
	// but later.
	id := m.cluster.ids[m.to]
	for _, node := range []int{m.to, m.from} {
		if err := m.set(node, "NODE", id); err != nil {
			return err
		}
	}
	for node, s := range m.cluster.nodes {
		if node == m.to || node == m.from || !s.up() {
			continue
		}
		if err := m.set(node, "NODE", id); err != nil {
			return err
		}
	}
	return m.settle()
}

// settle waits until all nodes name the new owner, as redis-cli does before it reports a moved slot.
func (m *Move) settle() error { return m.cluster.Settle(map[int]int{m.slot: m.to}, 0) }

// Settle waits until all nodes have agreed on the owners of slots for a time. Late messages between nodes can undo
// what they were told. (In Redis 7.0, two nodes can each name the other forever, and none serves the slot.) So
// Settle does what redis-cli --cluster fix does: it tells them again, with a newer epoch.
func (c *Cluster) Settle(owners map[int]int, steady time.Duration) error {
	since := time.Now()
	return await(settleWithin+steady, "the nodes do not agree", func() (bool, error) {
		for slot, owner := range owners {
			if err := c.agree(slot, owner); err != nil {
				since = time.Now()
				return false, err
			}
		}
		if left := steady - time.Since(since); left > 0 {
			return false, fmt.Errorf("for another %v", left)
		}
		return false, nil
	})
}

// agree tells all nodes who serves a slot if one of them disagrees.
func (c *Cluster) agree(slot, owner int) error {
	for _, s := range c.nodes {
		if !s.up() {
			continue
		}
		said, err := c.ownerAt(s, slot)
		if err == nil && said == owner {
			continue
		}
		m := Move{cluster: c, slot: slot, from: said, to: owner}
		if err := m.set(owner, "NODE", c.ids[owner]); err != nil {
			return err
		}
		if _, err := c.nodes[owner].Do(context.Background(), "CLUSTER", "BUMPEPOCH"); err != nil {
			return err
		}
		for node, s := range c.nodes {
			if node != owner && s.up() {
				if err := m.set(node, "NODE", c.ids[owner]); err != nil {
					return err
				}
			}
		}
		return fmt.Errorf("%s names node %d for slot %d, want %d", s.Addr(), said, slot, owner)
	}
	return nil
}

func (m *Move) set(node int, state, id string) error {
	_, err := m.cluster.nodes[node].Do(context.Background(), "CLUSTER", "SETSLOT", itoa(m.slot), state, id)
	if err != nil {
		return m.failed(fmt.Errorf("%s: %w", state, err))
	}
	return nil
}

func (m *Move) failed(err error) error {
	if _, ok := errors.AsType[ReplyError](err); ok {
		return fmt.Errorf("move slot %d to %s: refused: %w", m.slot, m.cluster.nodes[m.to].Addr(), err)
	}
	return fmt.Errorf("move slot %d: %w", m.slot, err)
}
