package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
)

// logFault says what a fault of the shared log is, what Sluice does about it, and what a person should do.
type logFault struct{ what, does, hint string }

// storeFault is the setting of advice about the store itself.
const storeFault = "store"

// logFaults are the faults by the reason of their event.
var logFaults = map[string]logFault{
	"diverged": {
		"two processes have decided differently", "loaded its copy of the pool anew",
		"if it happens again: run one release of Sluice everywhere, test the memory of the machines, and report it as a bug",
	},
	"poisoned": {
		"an entry of the log makes Sluice fail", "passes over the entry, as all processes do; the request in it failed",
		"report it as a bug, with this line; upgrade Sluice if a newer release is out",
	},
	"lost": {
		"the store has lost the log, or its end", "the processes that knew it write it again",
		"find out why: FLUSHALL, a restart without persistence, or a failover",
	},
	"evicted": {
		"Redis has evicted keys of the log, as its maxmemory-policy allows", "the processes that knew it write it again",
		"set maxmemory-policy noeviction, and raise maxmemory or remove what else this Redis holds",
	},
	"behind": {
		"the log grows faster than this process can read it", "does what on_store_failure says until it has caught up",
		"give this machine a faster connection, or let it use the store of a daemon: --store http://DAEMON",
	},
}

// readLogFaults returns advice about the faults of logs in the event log, by resource.
func readLogFaults(s *session, from time.Time) (map[string][]inspect.Advice, error) {
	type found struct {
		places map[string]bool // several processes tell of one place
		last   inspect.Event
	}
	all, ours := map[[2]string]*found{}, s.ours()
	err := eventlog.ReadKinds(s.dir, from, []string{inspect.EventLogFault}, func(e inspect.Event) bool {
		if _, known := logFaults[e.Reason]; !known || !eventlog.IsOf(&e, ours) {
			return true
		}
		key := [2]string{e.Resource, e.Reason}
		if all[key] == nil {
			all[key] = &found{places: map[string]bool{}}
		}
		all[key].places[e.Position] = true
		all[key].last = e
		return true
	})
	advice := map[string][]inspect.Advice{}
	for key, f := range all {
		advice[key[0]] = append(advice[key[0]], logAdvice(len(f.places), &f.last))
	}
	for _, list := range advice {
		slices.SortFunc(list, func(a, b inspect.Advice) int { return strings.Compare(a.Text, b.Text) })
	}
	return advice, err
}

// logAdvice returns the advice about a fault that happened n times, the last one as an event tells it.
func logAdvice(n int, last *inspect.Event) inspect.Advice {
	f := logFaults[last.Reason]
	text := fmt.Sprintf("%s: %s in this period, the last time at %s, position %s", capital(f.what), times(n), last.Time.UTC().Format(time.RFC3339), last.Position)
	if last.Writer != "" {
		text += ", in an entry of the process " + last.Writer
	}
	if last.Error != "" {
		text += " (" + last.Error + ")"
	}
	return inspect.Advice{Setting: storeFault, Text: text + ". Sluice: " + f.does + ". What to do: " + f.hint + "."}
}

// rulesAdvice names the processes that keep the pool from deciding by newer rules. ok is false if none does.
func rulesAdvice(l *inspect.LogStatus) (a inspect.Advice, ok bool) {
	if l == nil || len(l.HoldBack) == 0 {
		return a, false
	}
	const few = 5
	names := strings.Join(l.HoldBack[:min(len(l.HoldBack), few)], ", ")
	if more := len(l.HoldBack) - few; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return inspect.Advice{Setting: storeFault, Text: fmt.Sprintf(
		"The pool decides by rules %d, although this release knows %d, because these processes run an older release: %s. The ids of their tickets begin so. "+
			"Upgrade them; then the rules rise by themselves.", l.Rules, l.RulesKnown, names)}, true
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
