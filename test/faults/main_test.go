package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// The test binary also runs as a worker.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == roleWorker || os.Args[1] == roleProbe) {
		os.Exit(mainCode(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// TestCampaign is a short campaign: no fault, lost replies, lost memory.
func TestCampaign(t *testing.T) {
	o := options{only: []string{"none", "reply-swallowed", "flushall"}, load: 3 * time.Second, workers: 3, seed: 1, json: true}
	var out, progress bytes.Buffer
	broken, err := o.run(t.Context(), &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	var found table
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	if broken {
		t.Errorf("a rule was broken:\n%s", found.text())
	}
	if len(found.Runs) != len(o.only) {
		t.Errorf("%d runs:\n%s", len(found.Runs), &out)
	}
	for _, x := range found.Runs {
		if x.Grants == 0 || x.Rolling == 0 || x.Strict == 0 || x.Bucket == 0 || x.Places == 0 {
			t.Errorf("%s: the checks saw nothing:\n%s", x.Fault, found.text())
		}
		if !strings.Contains(progress.String(), x.Fault) {
			t.Errorf("%s: not said on the way: %s", x.Fault, &progress)
		}
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-only", "none,latency", "-for", "4s", "-workers", "3", "-seed", "9", "-json", "-md", "f.md", "-keep", "d"})
	if err != nil || len(o.only) != 2 || o.load != 4*time.Second || o.workers != 3 || o.seed != 9 || !o.json || o.markdown != "f.md" || o.keep != "d" {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"x"}, {"-for", "1ms"}, {"-workers", "1"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestChoose(t *testing.T) {
	every, err := choose(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range every {
		if seen[f.name] || f.name == "" || f.what == "" || (f.do == nil) == (f.whole == nil) {
			t.Errorf("fault %q: twice, or half of one", f.name)
		}
		seen[f.name] = true
	}
	if list, err := choose([]string{"kill-9", "none"}); err != nil || len(list) != 2 || list[0].name != "kill-9" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := choose([]string{"nonsense"}); err == nil || !strings.Contains(err.Error(), "known are none, latency") {
		t.Error(err)
	}
}
