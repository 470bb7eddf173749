package main

import (
	"encoding/json"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waits RESOURCE AGENT returns once an agent waits for a resource.
func waits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waits RESOURCE AGENT")
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		ts.Check(ts.Exec("sluice", "why", args[0], "--agent", args[1], "--json"))
		var list struct {
			Waiting []json.RawMessage `json:"waiting"`
		}
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
		if len(list.Waiting) > 0 {
			return
		}
	}
	ts.Fatalf("%s does not wait", args[1])
}
