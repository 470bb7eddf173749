package main

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waits RESOURCE AGENT [N] returns once an agent waits for a resource, with N requests.
func waits(ts *testscript.TestScript, neg bool, args []string) {
	n := 1
	if len(args) == 3 {
		var err error
		n, err = strconv.Atoi(args[2])
		ts.Check(err)
		args = args[:2]
	}
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waits RESOURCE AGENT [N]")
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		ts.Check(ts.Exec("sluice", "why", args[0], "--agent", args[1], "--json"))
		var list struct {
			Waiting []json.RawMessage `json:"waiting"`
		}
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
		if len(list.Waiting) >= n {
			return
		}
	}
	ts.Fatalf("%s does not wait with %d requests", args[1], n)
}

// withinminute DURATION returns when at least that much is left of the minute, for counts per minute.
func withinMinute(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: withinminute DURATION")
	}
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	now := time.Now()
	if next := now.Truncate(time.Minute).Add(time.Minute); next.Sub(now) < d {
		time.Sleep(next.Sub(now))
	}
}
