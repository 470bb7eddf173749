package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice/inspect"
)

// logDescs describe the log that processes share, and this process's copy of the pool.
type logDescs struct {
	diverged, poisoned, lost, behind, snapshots       *prometheus.Desc
	rules, rulesKnown, processes, bytes, snapshotSize *prometheus.Desc
}

func (d *logDescs) init(desc func(name, help string, labels ...string) *prometheus.Desc) {
	d.diverged = desc("replica_divergence_total", "How often another process had decided otherwise than this one, which then loaded its copy of the pool anew.", "resource")
	d.poisoned = desc("log_poisoned_total", "Entries of the log that make copies of the pool fail, and that all processes pass over.", "resource")
	d.lost = desc("log_losses_total", "How often this process found the log, or its end, lost.", "resource")
	d.behind = desc("log_behind_total", "How often the log grew faster than this process could read it.", "resource")
	d.snapshots = desc("log_snapshots_total", "Snapshots of the pool that this process has written.", "resource")
	d.rules = desc("pool_rules", "The number of the rules by which the pool decides.", "resource")
	d.rulesKnown = desc("pool_rules_known", "The highest number of rules that this process knows.", "resource")
	d.processes = desc("log_processes", "Processes that share the pool.", "resource")
	d.bytes = desc("log_bytes", "Size of the log since the latest snapshot.", "resource")
	d.snapshotSize = desc("log_snapshot_bytes", "Size of the latest snapshot.", "resource")
}

func (d *logDescs) tell(out *teller, name string, l *inspect.LogStatus) {
	if l == nil {
		return
	}
	out.counter(d.diverged, float64(l.Diverged), name)
	out.counter(d.poisoned, float64(l.Poisoned), name)
	out.counter(d.lost, float64(l.Lost), name)
	out.counter(d.behind, float64(l.Behind), name)
	out.counter(d.snapshots, float64(l.Snapshots), name)
	out.gauge(d.rules, float64(l.Rules), name)
	out.gauge(d.rulesKnown, float64(l.RulesKnown), name)
	out.gauge(d.processes, float64(l.Processes), name)
	out.gauge(d.bytes, float64(l.Bytes), name)
	out.gauge(d.snapshotSize, float64(l.SnapshotBytes), name)
}
