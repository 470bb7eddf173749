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
	// fullWithin is how long after the last fault the fleet may take to use the whole limit again: a killed process is known by
	// its silence after 15 s, its requests count for a window more, and the rest is for a busy machine.
	fullWithin = 60 * time.Second
	// fullUse is the part of the limit that counts as that. After refusals without a reason less is used for an hour.
	fullUse = 0.75
	// fullSpan is how long the whole limit must be used.
	fullSpan = 2 * chaosWindow
	// emptyWithin is how long after the last request tickets may stand.
	emptyWithin = 40 * time.Second
	// spareDescriptors are those that a gate may have more than at its beginning: idle connections to the provider and the store.
	spareDescriptors = 24
)

// worstWindow is the most that arrived in any window, and how many were refused. Entries are by time.
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

// accepted counts accepted requests from a moment on, in all, by gate and by class.
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

// lacking says what is missing for the whole fleet to be at full use, by what arrived in a span of time. "" is nothing.
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

// awaitFull waits until the fleet is at full use again, and returns how long that took.
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

// told is what gates say of themselves, and the first one of the pool.
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

// resource is the pool as the first gate shows it.
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

// awaitEmpty waits until no ticket stands and nothing waits, and looks whether a charge was lost.
func (w *world) awaitEmpty() {
	var r inspect.ResourceStatus
	var err error
	empty := w.until(emptyWithin, func() bool {
		r, err = w.resource()
		waiting := 0
		for _, n := range r.Waiting {
			waiting += n
		}
		return err == nil && r.InFlight == 0 && waiting == 0
	})
	if w.ctx.Err() != nil {
		return
	}
	if !empty {
		w.slow("%v after the last request: %d in flight, %v waiting, error %v", emptyWithin, r.InFlight, r.Waiting, err)
		return
	}
	all, _ := accepted(w.provider.log(), time.Time{})
	// A gate that is killed while it is cut off takes what it granted with it; that was within its share.
	cutOffAndKilled := w.plan.store == onRedis && w.plan.any(func(k *chaosKind) bool { return k.kills })
	if r.Sent < int64(all) && !w.plan.loses() && !cutOffAndKilled {
		w.broke("the provider has accepted %d requests, and only %d are charged", all, r.Sent)
	}
}

// checkLeaks looks what is left when all is quiet. before are the descriptors of each gate at the beginning.
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

// checkFiles looks at the files that are left when all processes have ended in order: a pool needs a few, whatever happened.
func (w *world) checkFiles() {
	const most = 64
	n := 0
	_ = filepath.WalkDir(filepath.Join(w.dir, "state"), func(_ string, _ os.DirEntry, _ error) error { n++; return nil }) // without a directory there is none
	if n > most {
		w.broke("%d files are left in the state directory", n)
	}
}
