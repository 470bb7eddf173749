package main

import (
	"errors"
	"fmt"
	"time"
)

// serverFaults returns the faults of a single Redis server.
func serverFaults() []*fault {
	persistent := []string{"appendonly yes", "appendfsync always"}
	return []*fault{
		{name: "stopped", what: "SIGSTOP of Redis for 4 s; then it runs the commands that it got in that time", do: stopped},
		{name: "kill-9", what: "kill -9 of Redis, restarted empty after 1 s", loses: true, do: killed},
		{name: "kill-9-aof", what: "the same with appendonly yes and appendfsync always: nothing is lost", lines: persistent, do: killed},
		{name: "restart-rdb", what: "SIGTERM and a restart, with a saved snapshot", lines: []string{"save 3600 1"}, do: func(r *rig) error { return r.server.Restart() }},
		{name: "old-snapshot", what: "kill -9 of Redis, restarted with a snapshot that is 2 s old", lines: []string{"save 3600 1"}, loses: true, do: oldSnapshot},
		{name: "flushall", what: "FLUSHALL, twice within 1.5 s", loses: true, do: flushed},
		{name: "evicted", what: "the key of one pool is deleted, as by eviction", loses: true, do: evicted},
		{name: "script-flush", what: "SCRIPT FLUSH and FUNCTION FLUSH, again and again", do: scriptsFlushed},
		{name: "subscribers-cut", what: "connections that listen for messages are cut, again and again", do: subscribersCut},
		{name: "out-of-memory", what: "maxmemory 1mb for 3 s", do: setting("maxmemory", "1mb", "0")},
		{name: "no-replicas", what: "min-replicas-to-write 1 for 3 s, without a replica", do: setting("min-replicas-to-write", "1", "0")},
	}
}

func stopped(r *rig) error {
	if err := r.server.Pause(); err != nil {
		return err
	}
	return errors.Join(r.sleep(4*time.Second), r.server.Resume())
}

func killed(r *rig) error {
	if err := r.server.Kill(); err != nil {
		return err
	}
	return errors.Join(r.sleep(time.Second), r.server.Restart())
}

func oldSnapshot(r *rig) error {
	return errors.Join(r.do("SAVE"), r.sleep(2*time.Second), r.server.Kill(), r.server.Restart())
}

func flushed(r *rig) error {
	return errors.Join(r.do("FLUSHALL"), r.sleep(1500*time.Millisecond), r.do("FLUSHALL"))
}

func evicted(r *rig) error {
	key := prefix + ":{" + poolNames[rolling] + "}"
	n, err := r.server.Do(r.ctx, "DEL", key)
	if err == nil && n != "1" {
		err = fmt.Errorf("key %s is not there", key)
	}
	return err
}

func scriptsFlushed(r *rig) error {
	return r.every(300*time.Millisecond, 3*time.Second, func() error {
		return errors.Join(r.do("SCRIPT", "FLUSH"), r.do("FUNCTION", "FLUSH"))
	})
}

func subscribersCut(r *rig) error {
	return r.every(200*time.Millisecond, 4*time.Second, func() error { return r.do("CLIENT", "KILL", "TYPE", "pubsub") })
}

// setting returns a fault that changes a setting of Redis for 3 s.
func setting(name, to, back string) func(r *rig) error {
	return func(r *rig) error {
		if err := r.do("CONFIG", "SET", name, to); err != nil {
			return err
		}
		return errors.Join(r.sleep(3*time.Second), r.do("CONFIG", "SET", name, back))
	}
}
