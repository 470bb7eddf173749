//go:build slow && linux

package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim/mock"
)

// readLog reads the provider's log, in the order of arrival.
func readLog(path string) ([]mock.Entry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the last line may still be written
	var all []mock.Entry
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var e mock.Entry
		if err := d.Decode(&e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b mock.Entry) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// between returns the entries from one time to another.
func between(all []mock.Entry, from, to time.Time) []mock.Entry {
	var some []mock.Entry
	for _, e := range all {
		if !e.Time.Before(from) && e.Time.Before(to) {
			some = append(some, e)
		}
	}
	return some
}

// shares counts the accepted requests: by host, which is the prefix of the agent's name, and in total.
func shares(some []mock.Entry) (by map[string]int, all int) {
	by = map[string]int{}
	for _, e := range some {
		if e.Outcome == "accepted" {
			name, _, _ := strings.Cut(e.Agent, "-")
			by[name]++
			all++
		}
	}
	return by, all
}

// worst returns the most requests that arrived in any window that ends within a span of time, and the number of refused
// ones in the span. Windows may begin before the span.
func worst(all []mock.Entry, window time.Duration, from, to time.Time) (most, refused int) {
	first := 0
	for i, e := range all {
		for e.Time.Sub(all[first].Time) >= window {
			first++
		}
		if e.Time.Before(from) || !e.Time.Before(to) {
			continue
		}
		most = max(most, i-first+1)
		if e.Outcome != "accepted" {
			refused++
		}
	}
	return most, refused
}

// The checker finds a window with one request too many, wherever it begins, and tells hosts apart.
func TestJudge(t *testing.T) {
	begin := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	var all []mock.Entry
	for i := range 40 { // 10 per second
		all = append(all, mock.Entry{Time: begin.Add(time.Duration(i) * 100 * time.Millisecond), Agent: fmt.Sprintf("h%d-a", i%4), Outcome: "accepted"})
	}
	end := begin.Add(time.Hour)
	if most, refused := worst(all, time.Second, begin, end); most != 10 || refused != 0 {
		t.Errorf("the worst window has %d, %d are refused", most, refused)
	}
	all = slices.Insert(all, 20, mock.Entry{Time: begin.Add(1950 * time.Millisecond), Agent: "h1-a", Outcome: "throttled"})
	if most, refused := worst(all, time.Second, begin, end); most != 11 || refused != 1 {
		t.Errorf("with one more the worst window has %d, %d are refused", most, refused)
	}
	if most, _ := worst(all, time.Second, begin, begin.Add(1900*time.Millisecond)); most != 10 {
		t.Errorf("before it the worst window has %d", most)
	}
	if by, n := shares(between(all, begin, begin.Add(2*time.Second))); n != 20 || by["h0"] != 5 || by["h1"] != 5 {
		t.Errorf("shares are %v of %d", by, n)
	}
}
