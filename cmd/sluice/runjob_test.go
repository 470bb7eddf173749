package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

func TestJobComesBackFromItsLetter(t *testing.T) {
	walls := retry.Policy{Attempts: 3, Deadline: time.Minute, Base: time.Second}
	want := job{
		argv: []string{"curl", "-d", "\xff"}, wait: time.Second, waitsFor: []string{"b"}, newWork: true, walls: walls,
		req: sluice.Request{
			Resource: "api", Agent: "a", Class: "p1", User: "u", Model: "m", Tool: "t", Cost: []sluice.Amount{{Unit: "points", N: 5}},
			Emergency: true, TTL: time.Minute,
		},
	}
	e := want.letter()
	got := jobOf(&e, retry.Policy{Base: time.Second})
	want.req.Retry = true // it has been sent before
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v,\nwant %+v", got, want)
	}
	if got := jobOf(&deadletter.Entry{Argv: []deadletter.Text{"x"}}, walls); got.walls.Attempts != 3 || got.walls.Deadline != time.Minute {
		t.Errorf("an entry without walls has %+v", got.walls)
	}
}

func TestChildEnvironment(t *testing.T) {
	got := childEnv([]string{"A=1", "SLUICE_CLASS=p0", "SLUICE_AGENTS=x", "B=", "SLUICE_AGENT=old", "odd"},
		[]variable{{"SLUICE_AGENT", "new"}, {"SLUICE_CLASS", ""}})
	if want := []string{"A=1", "SLUICE_AGENTS=x", "B=", "odd", "SLUICE_AGENT=new"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The store address in the configuration may hold a password; the child reads it there.
func TestChildIsToldOfTheStore(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flag, env, want string }{
		{"", "", ""}, {"mem:", "", "mem:"}, {"", "mem:", "mem:"}, {"file:rel", "", "file:" + filepath.Join(here, "rel")},
	} {
		t.Setenv(envStore, c.env)
		cmd := newRoot()
		if err := cmd.ParseFlags([]string{"--store", c.flag}); err != nil {
			t.Fatal(err)
		}
		s := &session{file: testConfig(t, "store: mem:\n")}
		vars, err := variables(cmd, s, &job{req: sluice.Request{Agent: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range vars {
			if v.name == envStore {
				got = v.value
			}
		}
		if got != c.want {
			t.Errorf("flag %q, variable %q: the child is told %q, want %q", c.flag, c.env, got, c.want)
		}
	}
}

func TestIdentityOfANestedRun(t *testing.T) {
	t.Setenv(envSlot, "outer")
	t.Setenv(envClass, "p0")
	t.Setenv(envUser, "u")
	for _, c := range []struct {
		flags     []string
		has, want identity
	}{
		{nil, identity{agent: "outer", class: "p1", user: "configured"}, identity{"outer", "p0", "u"}},
		{[]string{"--class", "p2", "--user", "v"}, identity{"outer", "p2", "v"}, identity{"outer", "p2", "v"}},
		{nil, identity{agent: "other"}, identity{"other", "", "u"}}, // a class is its agent's
		{nil, identity{"other", "p1", "configured"}, identity{"other", "p1", "configured"}},
	} {
		cmd := newRun()
		if err := cmd.ParseFlags(c.flags); err != nil {
			t.Fatal(err)
		}
		got := c.has
		inherit(cmd, &got)
		if got != c.want {
			t.Errorf("%v %+v: got %+v, want %+v", c.flags, c.has, got, c.want)
		}
	}
	t.Setenv(envSlot, "")
	got := identity{agent: "a"}
	inherit(newRun(), &got)
	if got != (identity{agent: "a"}) {
		t.Errorf("outside of any run: got %+v", got)
	}
}

func TestVerdictOfAnExitCode(t *testing.T) {
	for code, want := range map[int]store.Verdict{0: store.VerdictOK, 1: store.VerdictError, exitNotYet: store.VerdictError, 128: store.VerdictError} {
		if got := verdict(code); got != want {
			t.Errorf("%d: got %v, want %v", code, got, want)
		}
	}
}

// If a dead letter cannot be kept, the user is told.
func TestLetterThatCannotBeKept(t *testing.T) {
	t.Chdir(t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir  string
		argv []string
		want string
	}{
		{"", []string{"true"}, "no state directory"},
		{file, []string{"true"}, "not a directory"},
		{t.TempDir(), []string{"echo", strings.Repeat("x", deadletter.MaxEntry)}, "too large"},
	} {
		var said strings.Builder
		r := &runner{job: job{argv: c.argv}, s: &session{dir: c.dir, file: &config.File{}}, stderr: &said}
		res := result{code: exitNotYet, gaveUp: "attempts", why: &failure{code: exitNotYet, message: "gave up"}}
		r.bury(&res)
		if !strings.Contains(res.why.detail, c.want) || res.end() == nil {
			t.Errorf("%s: it says %+v", c.dir, res.why)
		}
	}
}

// A keeper that was told to end starts no further child.
func TestNothingIsStartedAfterTheEndWasAskedFor(t *testing.T) {
	k, ctx := newKeeper(context.Background())
	defer k.close()
	k.pass(os.Interrupt)
	if c := signalOf(ctx); c == nil || c.signal != os.Interrupt || !k.stopped() {
		t.Errorf("the context ended with %v", context.Cause(ctx))
	}
	if _, err := k.run("/no/such/program", []string{"x"}, nil); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("got %v", err)
	}
}

func testConfig(t *testing.T, text string) *config.File {
	t.Helper()
	f, err := config.Parse("test.yaml", []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The command gets the daemon's token only on request.
func TestTokenIsNotPassedOn(t *testing.T) {
	t.Setenv(envStore, "")
	for _, pass := range []bool{false, true} {
		cmd := newRoot()
		cmd.Flags().Bool("pass-token", pass, "")
		vars, err := variables(cmd, &session{file: testConfig(t, "store: mem:\n")}, &job{req: sluice.Request{Agent: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Contains(childEnv([]string{"SLUICE_TOKEN=s3cr3t"}, vars), "SLUICE_TOKEN=s3cr3t"); got != pass {
			t.Errorf("--pass-token=%v: %v", pass, got)
		}
	}
}
