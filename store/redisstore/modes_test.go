package redisstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// works appends and reads through an engine.
func works(t *testing.T, e *Engine) {
	t.Helper()
	l := e.Log("pool")
	loaded, err := l.Load(t.Context(), sharedlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Append(t.Context(), loaded.At, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Compact(t.Context(), got.At, []byte("snapshot")); err != nil {
		t.Fatal(err)
	}
	if again, err := l.Load(t.Context(), sharedlog.Position{}); err != nil || string(again.Snapshot) != "snapshot" {
		t.Errorf("%v, %q", err, again.Snapshot)
	}
	at := got.At.Moved(got.At.Offset)
	if mine, err := l.Claim(t.Context(), at, time.Minute); err != nil || !mine {
		t.Errorf("%v, %v", mine, err)
	}
	if _, err := l.Post(t.Context(), 1, at); err != nil {
		t.Error(err)
	}
	if at, err = l.Revive(t.Context(), at, []byte("revived")); err != nil {
		t.Fatal(err)
	}
	if err := l.Keep(t.Context(), at, time.Hour); err != nil {
		t.Error(err)
	}
	if names, whole, err := e.Pools(t.Context()); err != nil || !whole || !slices.Contains(names, "pool") {
		t.Errorf("%q, %v, %v", names, whole, err)
	}
	if _, err := e.Secret(t.Context(), "words", make([]byte, store.SecretSize)); err != nil {
		t.Error(err)
	}
	woken, err := l.Watch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Publish(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	<-woken
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certs, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := redisrun.NewServer(t, redisrun.Options{TLS: &certs})
	works(t, open(t, "rediss://"+s.TLSAddr()+"?ca="+certs.CA+"&cert="+certs.ClientCert+"&key="+certs.ClientKey))
	_, err = OpenEngine(t.Context(), "rediss://"+s.TLSAddr()+"?cert="+certs.ClientCert+"&key="+certs.ClientKey)
	refused(t, err, sharedlog.ErrUnfit, "as ca=")
	_, err = OpenEngine(t.Context(), "rediss://"+s.TLSAddr()+"?ca=/not/there")
	refused(t, err, sharedlog.ErrUnfit, "the file")
}

func TestSocketAndDatabase(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "r.sock")
	s := redisrun.New(t, "unixsocket "+socket)
	works(t, open(t, "redis+unix://"+socket+"?db=3&prefix=mine"))
	if said, err := s.Do(t.Context(), "INFO", "keyspace"); err != nil || !strings.Contains(said, "db3:") || strings.Contains(said, "db0:") {
		t.Errorf("%v, %s", err, said)
	}
}

// refused fails unless err matches want, and its text and hint contain says.
func refused(t *testing.T, err, want error, says string) {
	t.Helper()
	text := fmt.Sprint(err)
	if h, ok := errors.AsType[*Error](err); ok {
		text += " " + h.Hint()
	}
	if !errors.Is(err, want) || !strings.Contains(text, says) {
		t.Errorf("%s does not match %v and say %q", text, want, says)
	}
}

// Rights are those that the package comment names.
var Rights = strings.Fields(`+eval +evalsha +time +append +getrange +strlen +exists +get +set +del +rename +renamenx +pexpire +persist +pttl
	+hmget +hset +hgetall +scan +publish +subscribe +unsubscribe
	+ping +hello +auth +select +client|setname +cluster|shards +cluster|slots +asking +info`)

// user makes one of a server and returns the URL for it.
func user(t *testing.T, s *redisrun.Server, name string, commands ...string) string {
	t.Helper()
	do(t, s, append([]string{"ACL", "SETUSER", name, "on", ">secret", "resetkeys", "~mine:*", "resetchannels", "&mine:*", "-@all"}, commands...)...)
	return "redis://" + name + ":secret@" + s.Addr() + "?prefix=mine"
}

// A user with the rights of the package comment can do what a process does. store-suites runs the whole suite as that user.
func TestTheLeastRights(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	url := user(t, s, "least", Rights...)
	e := open(t, url)
	works(t, e)
	if _, err := e.Aside(t.Context(), "pool"); err != nil {
		t.Error(err)
	}
	watching, end := context.WithCancel(t.Context())
	if _, err := e.Log("pool").Watch(watching, 2); err != nil {
		t.Error(err)
	}
	end()
	until(t, func() bool { return strings.Contains(do(t, s, "INFO", "commandstats"), "cmdstat_unsubscribe:") })
	if refused := do(t, s, "ACL", "LOG"); refused != "" {
		t.Errorf("the server has refused something: %s", refused)
	}
	used := do(t, s, "INFO", "commandstats")
	elsewhere := []string{"cluster|shards", "cluster|slots", "asking", "auth", "select", "ping", "client|setname"} // in a Cluster, by old protocols, or when idle
	for _, right := range Rights {
		if name := right[1:]; !strings.Contains(used, "cmdstat_"+name+":") && !slices.Contains(elsewhere, name) {
			t.Errorf("nothing needs the right %s", right)
		}
	}
	for _, name := range []string{"elsewhere", "sluice"} {
		_, err := OpenEngine(t.Context(), strings.Replace(url, "prefix=mine", "prefix="+name, 1))
		refused(t, err, sharedlog.ErrUnfit, "ACL SETUSER")
	}
	_, err := OpenEngine(t.Context(), strings.Replace(url, "secret", "hunter2", 1))
	refused(t, err, sharedlog.ErrUnfit, "password")
	if strings.Contains(fmt.Sprint(err), "hunter2") {
		t.Errorf("%v has the password", err)
	}
	weak := slices.DeleteFunc(slices.Clone(Rights), func(r string) bool { return r == "+append" })
	e = open(t, user(t, s, "weak", weak...))
	loaded, err := e.Log("p").Load(t.Context(), sharedlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Log("p").Append(t.Context(), loaded.At, []byte("x"))
	refused(t, err, sharedlog.ErrUnfit, "~mine:*")
}

func TestTheKindOfServerMustFit(t *testing.T) {
	t.Parallel()
	single, cluster := redisrun.New(t), redisrun.NewCluster(t)
	for url, says := range map[string]string{
		"redis+cluster://" + single.Addr():    "not part of a cluster",
		"redis://" + cluster.Addrs()[0]:       "use redis+cluster://",
		"redis://" + single.Addr() + "/99":    "database",
		"http://" + single.Addr():             "unknown scheme",
		"rediss://" + single.Addr() + "?ca=/": "ca",
	} {
		_, err := OpenEngine(t.Context(), url)
		refused(t, err, sharedlog.ErrUnfit, says)
	}
	_, err := OpenEngine(t.Context(), "redis://127.0.0.1:1")
	refused(t, err, sharedlog.ErrUnavailable, "is it running")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := single.Pause(); err != nil {
		t.Fatal(err)
	}
	_, err = OpenEngine(ctx, single.URL())
	refused(t, err, sharedlog.ErrUnavailable, "did not answer in time")
	if err := single.Resume(); err != nil {
		t.Fatal(err)
	}
}

// until polls a condition.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("waited in vain")
		}
	}
}
