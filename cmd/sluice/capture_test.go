package main

import (
	"encoding/json"

	"github.com/rogpeppe/go-internal/testscript"
)

// capture VARIABLE FIELD sets a variable to a field of the JSON that the last command printed.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VARIABLE FIELD")
	}
	var printed map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &printed))
	value, ok := printed[args[1]].(string)
	if !ok {
		ts.Fatalf("there is no text %q in %v", args[1], printed)
	}
	ts.Setenv(args[0], value)
}
