package redisrun

import (
	"context"
	"errors"
	"fmt"
)

// Move is a slot on its way to another node. Until Finish the old owner serves the
// keys it still has and answers ASK for the others.
type Move struct {
	cluster  *Cluster
	slot     int
	from, to int
}

// MoveSlot moves a slot with its keys to the node of that index. Clients that ask the
// old owner afterwards are answered MOVED. It does nothing if the slot is there.
func (c *Cluster) MoveSlot(slot, to int) error {
	m, err := c.BeginMove(slot, to)
	if err != nil || m == nil {
		return err
	}
	return m.Finish()
}

// BeginMove opens a slot for its move to the node of that index, and moves no key yet.
// It returns nil if the slot is there.
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
	// In this order: who is asked with ASKING must expect it.
	if err := m.set(to, "IMPORTING", c.ids[from]); err != nil {
		return nil, err
	}
	if err := m.set(from, "MIGRATING", c.ids[to]); err != nil {
		return nil, err
	}
	return m, nil
}

// Keys moves up to n keys of the slot and returns how many there were to move.
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
	// NOKEY is no error: they may have expired or been deleted by now.
	if _, err := from.Do(ctx, args...); err != nil {
		return 0, m.failed(err)
	}
	return len(r.list), nil
}

// Finish moves the keys that are left and tells every node who serves the slot now.
// Nodes that are down or paused learn it from the others.
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
	// The new owner first: until the old one hears of it, it answers ASK. The others
	// would learn it by themselves, later.
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

// settle sees to it that all nodes name the new owner, as redis-cli does before it says that a slot was moved. What nodes have
// heard of each other before can undo what they were told, and two that name each other stay so: then no one serves the slot.
func (m *Move) settle() error {
	return await(settleWithin, "the nodes do not agree", func() (bool, error) {
		for node, s := range m.cluster.nodes {
			if !s.up() {
				continue
			}
			owner, err := m.cluster.ownerAt(s, m.slot)
			if err == nil && owner == m.to {
				continue
			}
			if err := m.set(node, "NODE", m.cluster.ids[m.to]); err != nil {
				return false, err
			}
			return false, fmt.Errorf("%s names node %d for slot %d, want %d", s.Addr(), owner, m.slot, m.to)
		}
		return false, nil
	})
}

func (m *Move) set(node int, state, id string) error {
	_, err := m.cluster.nodes[node].Do(context.Background(), "CLUSTER", "SETSLOT", itoa(m.slot), state, id)
	if err != nil {
		return m.failed(fmt.Errorf("%s: %w", state, err))
	}
	return nil
}

func (m *Move) failed(err error) error {
	var refused ReplyError
	if errors.As(err, &refused) {
		return fmt.Errorf("move slot %d from %s to %s: refused: %w", m.slot,
			m.cluster.nodes[m.from].Addr(), m.cluster.nodes[m.to].Addr(), err)
	}
	return fmt.Errorf("move slot %d: %w", m.slot, err)
}
