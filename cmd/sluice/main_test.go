package main

import (
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluicehq/sluice/internal/proctest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sluice": func() {
		longAfter = proctest.Patience // a busy machine says nothing that is not in the transcripts
		main()
	}})
}

// scriptsWithin is when a transcript that hangs is killed. All of them take about half a minute on an idle machine.
const scriptsWithin = 5 * time.Minute

// transcripts returns how the scripts in testdata run, each on its own store: $STORE. Files of the machine, such as
// events, are in $WORK/state/sluice, whatever the store.
func transcripts(store func(*testscript.Env) (url string, err error)) testscript.Params {
	return testscript.Params{
		UpdateScripts: os.Getenv("SLUICE_UPDATE") != "",
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "capture": capture, "waits": waits, "redis": redis, "withinminute": withinMinute},
		Deadline:      time.Now().Add(scriptsWithin),
		Setup: func(env *testscript.Env) error {
			proctest.DefaultSignals()
			env.Setenv("XDG_STATE_HOME", env.Getenv("WORK")+"/state")
			url, err := store(env)
			env.Setenv("STORE", url)
			env.Setenv("LF", "\n")
			return err
		},
	}
}

// The transcripts in testdata are what a user sees.
func TestTranscripts(t *testing.T) {
	p := transcripts(func(env *testscript.Env) (string, error) { return "file:" + env.Getenv("WORK") + "/state/sluice", nil })
	p.Dir = "testdata"
	testscript.Run(t, p)
}
