package metrics

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

func TestTheLogOfAPool(t *testing.T) {
	_, gate := open(t, sluice.Config{Resources: api(hourly(10))})
	l := inspect.LogStatus{Processes: 3, Rules: 1, RulesKnown: 2, Diverged: 4, Poisoned: 5, Lost: 6, Behind: 7, Snapshots: 8, Bytes: 9, SnapshotBytes: 10}
	r := New(Options{Gate: gate, Status: func(context.Context) (inspect.Status, error) {
		return inspect.Status{Resources: []inspect.ResourceStatus{
			{Name: "api", State: inspect.StateIdle, Log: &l}, {Name: "cut off", Outage: &inspect.OutageStatus{}, Log: &l}, {Name: "file", State: inspect.StateIdle},
		}}, nil
	}})
	body := scrape(t, r)
	for _, name := range []string{"api", "cut off"} {
		has(t, body,
			`sluice_replica_divergence_total{resource="`+name+`"} 4`, `sluice_log_poisoned_total{resource="`+name+`"} 5`,
			`sluice_log_losses_total{resource="`+name+`"} 6`, `sluice_log_behind_total{resource="`+name+`"} 7`, `sluice_log_snapshots_total{resource="`+name+`"} 8`,
			`sluice_pool_rules{resource="`+name+`"} 1`, `sluice_pool_rules_known{resource="`+name+`"} 2`, `sluice_log_processes{resource="`+name+`"} 3`,
			`sluice_log_bytes{resource="`+name+`"} 9`, `sluice_log_snapshot_bytes{resource="`+name+`"} 10`)
	}
	if strings.Contains(body, `sluice_log_bytes{resource="file"}`) {
		t.Error("a store without a log shows one")
	}
}
