package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sim/mock"
)

const (
	// fullWithin is how long after the last fault the fleet may take to reach full use again. Other processes notice a
	// killed one after 15 s of silence, and its requests count for another window. The rest is for a busy machine.
	fullWithin = 60 * time.Second
	// fullUse is the part of the limit that counts as full use. After a refusal without a reason, Sluice uses less for
	// an hour.
	fullUse = 0.75
	// fullSpan is how long the fleet must be at full use.
	fullSpan = 2 * chaosWindow
	// emptyWithin is how long after the last request tickets may stay in flight or waiting.
	emptyWithin = 25 * time.Second
	// spareDescriptors is how many more files a gate may have open than at the start: idle connections to the provider
	// and the store.
	spareDescriptors = 24
)

// worstWindow returns the most requests that arrived in any window, and the number of refused ones. The log is sorted
// by time.
func worstWindow(log []mock.Entry, window time.Duration) (most, refused int) {
	var arrived []mock.Entry
	first := 0
	for _, e := range log {
		if e.Outcome == "failed" {
			continue
		}
		arrived = append(arrived, e)
		for e.Time.Sub(arrived[first].Time) >= window-grain {
			first++
		}
		most = max(most, len(arrived)-first)
		if e.Outcome == "throttled" {
			refused++
		}
	}
	return most, refused
}

// accepted counts the requests accepted since from: all of them, and by gate and by class.
func accepted(log []mock.Entry, from time.Time) (all int, by map[string]int) {
	by = map[string]int{}
	for _, e := range log {
		if e.Outcome == "accepted" && !e.Time.Before(from) {
			gate, class, _ := strings.Cut(e.Agent, "-")
			all++
			by[gate]++
			by[class]++
		}
	}
	return all, by
}

// lacking says why the fleet is not at full use, judging by the requests since from. It returns "" if the fleet is.
func lacking(log []mock.Entry, span time.Duration, from time.Time, gates int) string {
	all, by := accepted(log, from)
	if want := int(fullUse * chaosSize * float64(span) / float64(chaosWindow)); all < want {
		return fmt.Sprintf("%d requests in %v, and full use is %d", all, span, want)
	}
	for _, class := range chaosClasses {
		if by[class] == 0 {
			return fmt.Sprintf("class %s had none of %d requests in %v", class, all, span)
		}
	}
	for i := range gates {
		if by[fmt.Sprintf("g%d", i)] == 0 {
			return fmt.Sprintf("gate %d had none of %d requests in %v", i, all, span)
		}
	}
	return ""
}

// awaitFull waits until the fleet is at full use again and returns how long that took.
func (w *world) awaitFull() time.Duration {
	begin := time.Now()
	missing := ""
	ok := w.until(fullWithin, func() bool {
		from := time.Now().Add(-fullSpan)
		if from.Before(begin) {
			return false
		}
		missing = lacking(w.provider.log(), fullSpan, from, len(w.gates))
		return missing == ""
	})
	if !ok && w.ctx.Err() == nil {
		w.slow("%v after the last fault the fleet is not at full use: %s%s", fullWithin, missing, w.told())
	}
	return max(0, time.Since(begin)-fullSpan)
}

// told describes the state of all processes, and of the pool as the first gate sees it.
func (w *world) told() string {
	var b strings.Builder
	for _, d := range w.all() {
		b.WriteString("\n    " + d.describe())
	}
	if r, err := w.resource(); err != nil {
		fmt.Fprintf(&b, "\n    status: %v", err)
	} else if text, err := json.Marshal(r); err == nil {
		fmt.Fprintf(&b, "\n    status: %s", text)
	}
	return b.String()
}

// resource returns the status of the pool, from the first gate.
func (w *world) resource() (inspect.ResourceStatus, error) {
	var s inspect.Status
	resp, err := w.gates[0].client.Get("http://gate/v1/status")
	if err != nil {
		return inspect.ResourceStatus{}, err
	}
	defer resp.Body.Close() //nolint:errcheck // all was read
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return inspect.ResourceStatus{}, err
	}
	for _, r := range s.Resources {
		if r.Name == "api" {
			return r, nil
		}
	}
	return inspect.ResourceStatus{}, fmt.Errorf("the status has no pool of that name, of %d", len(s.Resources))
}

// isEmpty reports whether no request is in flight or waiting. A gate that cannot reach the store does not know.
func isEmpty(r *inspect.ResourceStatus) bool {
	waiting := 0
	for _, n := range r.Waiting {
		waiting += n
	}
	return r.Outage == nil && r.InFlight == 0 && waiting == 0
}

// awaitEmpty waits until no request is in flight or waiting, then checks that no charge was lost.
func (w *world) awaitEmpty() {
	var r inspect.ResourceStatus
	var err error
	empty := w.until(emptyWithin, func() bool {
		r, err = w.resource()
		return err == nil && isEmpty(&r)
	})
	if w.ctx.Err() != nil {
		return
	}
	if !empty {
		w.slow("%v after the last request: %d in flight, %v waiting, error %v", emptyWithin, r.InFlight, r.Waiting, err)
		return
	}
	all, _ := accepted(w.provider.log(), time.Time{})
	// A gate that is killed while it is cut off loses what it granted. Its share covers that.
	cutOffAndKilled := w.plan.store == onRedis && w.plan.any(func(k *chaosKind) bool { return k.kills })
	if r.Sent < int64(all) && !w.plan.loses() && !cutOffAndKilled {
		w.broke("the provider has accepted %d requests, and only %d are charged", all, r.Sent)
	}
}

// checkLeaks looks for open files and for Redis keys that never expire. before holds each gate's open files at the
// start.
func (w *world) checkLeaks(before []int) {
	for i, g := range w.gates {
		g.client.CloseIdleConnections()
		most, now := before[i]+spareDescriptors, 0
		if before[i] > 0 && !w.until(5*time.Second, func() bool { now = g.descriptors(); return now <= most }) && w.ctx.Err() == nil {
			w.broke("%s has %d open files, and had %d at the beginning", g.name, now, before[i])
		}
	}
	if w.server == nil {
		return
	}
	r := &rig{ctx: w.ctx, server: w.server}
	keys, err := r.eternal()
	switch {
	case w.ctx.Err() != nil:
	case err != nil:
		w.broke("look at the keys: %v", err)
	case len(keys) > 0:
		w.broke("%d keys in Redis never expire, such as %s", len(keys), keys[0])
	}
}

// checkFiles checks the number of files that remain after all processes have ended. A pool needs only a few, whatever
// happened.
func (w *world) checkFiles() {
	const most = 64
	n := 0
	_ = filepath.WalkDir(filepath.Join(w.dir, "state"), func(_ string, _ os.DirEntry, _ error) error { n++; return nil }) // if the directory is missing, n stays 0
	if n > most {
		w.broke("%d files are left in the state directory", n)
	}
}
