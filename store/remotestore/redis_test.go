package remotestore_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/redisstore"
	"github.com/sluicehq/sluice/store/remotestore"
)

// After Redis was unavailable behind a daemon, remote sessions continue as before.
func TestRedisBehindTheDaemon(t *testing.T) {
	redis := redisrun.New(t)
	st, err := store.Open(t.Context(), redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	lent := storeapi.New(storeapi.Options{Store: st, Identify: anybody})
	server := httptest.NewServer(lent)
	remote, err := remotestore.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = remote.Close()
		lent.Drain()
		server.Close()
		_ = lent.Close()
		_ = st.Close()
	})
	spec := places
	spec.OnFailure = store.FailShare
	p, err := remote.Pool(t.Context(), spec)
	for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); { // a busy machine can hold Redis up
		p, err = remote.Pool(t.Context(), spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	once := func() (store.State, error) {
		ops := []store.Op{ask(0)}
		if err := p.Apply(t.Context(), ops); err != nil {
			return 0, err
		}
		res := ops[0].Result
		if res.State == store.Granted {
			err := p.Apply(t.Context(), []store.Op{{Kind: store.OpClose, ID: res.ID}})
			return res.State, err
		}
		return res.State, nil
	}
	if state, err := once(); state != store.Granted || err != nil {
		t.Fatalf("%v %v", state, err)
	}
	if err := redis.Pause(); err != nil {
		t.Fatal(err)
	}
	lost := false
	for end := time.Now().Add(20 * time.Second); !lost && time.Now().Before(end); { // until it is noticed
		ops := []store.Op{ask(0)}
		lost = p.Apply(t.Context(), ops) != nil || ops[0].Result.State != store.Granted
	}
	if err := redis.Resume(); err != nil {
		t.Fatal(err)
	}
	var state store.State
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if state, err = once(); err == nil && state == store.Granted {
			return
		}
	}
	t.Errorf("Redis is back, and asking gives %v, %v", state, err)
}
