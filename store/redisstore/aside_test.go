package redisstore

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
)

// What something else wrote in the place of a log is moved aside, with all that belonged to it, by a user with the least rights.
// It expires, and the next log begins with nothing.
func TestADamagedLogIsMovedAside(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	e := open(t, user(t, s, "least", Rights...))
	l := e.Log("pool").(*log)
	loaded, err := l.Load(t.Context(), sharedlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), loaded.At, []byte("entry")); err != nil {
		t.Fatal(err)
	}
	do(t, s, "DEL", l.head())
	do(t, s, "SET", l.head(), "mine")
	_, err = l.Load(t.Context(), sharedlog.Position{})
	refused(t, err, sharedlog.ErrDamaged, "another kind")
	if e.Place("pool") != l.head() {
		t.Errorf("%s is where %s is", e.Place("pool"), l.head())
	}
	aside, err := e.Aside(t.Context(), "pool")
	if err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "GET", aside); got != "mine" {
		t.Errorf("%s holds %q", aside, got)
	}
	for _, key := range strings.Fields(do(t, s, "KEYS", "*")) {
		if !strings.HasPrefix(key, aside) || do(t, s, "TTL", key) == "-1" {
			t.Errorf("%s is left for ever", key)
		}
	}
	again, err := l.Load(t.Context(), sharedlog.Position{})
	if err != nil || !again.Created || len(again.Data) > 0 {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := l.Append(t.Context(), loaded.At, []byte("late")); err == nil {
		t.Error("an entry went into the log that was moved")
	}
	if _, err := e.Aside(t.Context(), "nothing"); err != nil {
		t.Errorf("there is nothing to move: %v", err)
	}
}
