//go:build linux || darwin

package sdk_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"
)

// results are what a client has seen, by case.
type results map[string]result

type result struct {
	line  string // all of it, as JSON, without request ids
	Value json.RawMessage
	Error *seenError
}

// seenError is what a program can know of an error that the client throws.
type seenError struct {
	Class      string `json:"class"`
	Status     int    `json:"status"`
	Type       string `json:"type"`
	Message    string `json:"message"`
	RetryAfter string `json:"retry_after"`
	Refused    string `json:"refused"`
}

// requestID is different in every answer.
var requestID = regexp.MustCompile(`req_[A-Z2-7]{24}`)

func (r *rig) results(lines []byte) results {
	r.Helper()
	all := results{}
	for line := range bytes.Lines(lines) {
		one := decode[struct{ Case string }](r.T, line)
		res := decode[result](r.T, line)
		res.line = string(requestID.ReplaceAll(line, []byte("req_")))
		all[one.Case] = res
	}
	return all
}

// value is what a case returned, which must not have failed.
func value[T any](t *testing.T, all results, name string) T {
	t.Helper()
	res, ok := all[name]
	if !ok || res.Error != nil {
		t.Fatalf("%s: %s", name, res.line)
	}
	return decode[T](t, res.Value)
}

// failure is what a case threw, which must have failed.
func failure(t *testing.T, all results, name string) *seenError {
	t.Helper()
	res := all[name]
	if res.Error == nil {
		t.Fatalf("%s did not fail: %s", name, res.line)
	}
	return res.Error
}
