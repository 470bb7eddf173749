package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/inspect"
)

// keyHint says how to get a key for dead letters.
const keyHint = "openssl rand -hex 32 prints a new one; dead letters that are encrypted with another key cannot be read with it"

// sealedIn opens the dead letters in a state directory for writing, with the key that the configuration names. If the
// key is missing it fails, instead of writing unencrypted.
func sealedIn(dir string, f *config.File) (*deadletter.List, error) {
	list, err := lettersIn(dir)
	if err != nil || f.DeadLetters.KeyEnv == "" {
		return list, err
	}
	key := strings.TrimSpace(os.Getenv(f.DeadLetters.KeyEnv))
	if key == "" {
		return nil, &failure{
			code: exitConfig, message: fmt.Sprintf("dead_letters.key_env: the variable %s is not set", f.DeadLetters.KeyEnv),
			hint: "set it to the key, or leave key_env out and keep dead letters unencrypted; " + keyHint,
		}
	}
	return list, keyFailure(f, list.SetKey(key))
}

// openedIn opens the dead letters for reading. Without the key it lists encrypted entries as such.
func openedIn(dir string, f *config.File) (*deadletter.List, error) {
	list, err := lettersIn(dir)
	if err != nil || f.DeadLetters.KeyEnv == "" || strings.TrimSpace(os.Getenv(f.DeadLetters.KeyEnv)) == "" {
		return list, err
	}
	return list, keyFailure(f, list.SetKey(os.Getenv(f.DeadLetters.KeyEnv)))
}

func keyFailure(f *config.File, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitConfig, message: fmt.Sprintf("dead_letters.key_env: the variable %s holds no key: %s", f.DeadLetters.KeyEnv, err), hint: keyHint}
}

// keeper returns the keeper for given-up requests of this session. It is nil if there is no directory or key for them
// and no resource wants them kept.
func (s *session) keeper() (*deadletter.Keeper, error) {
	list, err := sealedIn(s.dir, s.file)
	if err != nil {
		for _, r := range s.file.Resources {
			if r.DeadLetters == config.On {
				return nil, err
			}
		}
		return nil, nil
	}
	k := deadletter.NewKeeper(list, s.kept)
	k.Config, k.Store = deadletter.Text(s.configFile), deadletter.Text(s.store)
	return k, nil
}

// kept reports the outcome of keeping a request.
func (s *session) kept(e *deadletter.Entry, dropped []string, err error) {
	about := inspect.Event{
		Time: time.Now(), Kind: inspect.EventLetter, Resource: e.Resource, Agent: e.Agent, User: e.User, Class: e.Class, Model: e.Model, Tool: e.Tool,
		Reason: e.Reason, Count: int64(e.Attempts),
	}
	if n := len(e.Request.Answers); n > 0 {
		about.Status, about.Verdict = e.Request.Answers[n-1].Status, e.Request.Answers[n-1].Verdict
	}
	if err != nil {
		about.Error = err.Error()
		s.notes.Warn("a request that was given up could not be kept as a dead letter: "+err.Error(), "resource", e.Resource, "agent", e.Agent)
	}
	s.config.Events(about)
	if len(dropped) > 0 {
		s.config.Events(inspect.Event{Time: time.Now(), Kind: inspect.EventLetterDropped, Resource: e.Resource, Count: int64(len(dropped)), Reason: "the list was full"})
		s.notes.Warn("the list of dead letters was full; the oldest were dropped", "count", len(dropped), "up_to", dropped[len(dropped)-1])
	}
}

// subject describes an entry in a few words: a program, or a method and a path. It shows no arguments and no query.
func subject(e *deadletter.Entry) string {
	if e.Request == nil {
		return e.Program()
	}
	path, _, _ := strings.Cut(e.Request.Path, "?")
	return e.Request.Method + " " + cmp.Or(path, "(path not kept)")
}

// lastStatus returns the status of the last response to a request, or 0 if there was none.
func lastStatus(e *deadletter.Entry) int {
	if e.Request == nil || len(e.Request.Answers) == 0 {
		return 0
	}
	return e.Request.Answers[len(e.Request.Answers)-1].Status
}
