package redisconn

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	certs, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	strangers, err := redisrun.WriteCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := redisrun.NewServer(t, redisrun.Options{TLS: &certs})
	url := func(scheme, address string, params ...string) string {
		u := scheme + "://" + address
		for i, p := range params {
			u += map[bool]string{true: "?", false: "&"}[i == 0] + p
		}
		return u
	}
	ca, cert, key := "ca="+certs.CA, "cert="+certs.ClientCert, "key="+certs.ClientKey
	secure := server.TLSAddr()

	counted(t, open(t, url("rediss", secure, ca, cert, key)), "k", "1")
	counted(t, open(t, url("rediss", secure, ca, cert, key, "servername=localhost")), "k", "2")
	counted(t, open(t, url("rediss", strings.Replace(secure, "127.0.0.1", "localhost", 1), ca, cert, key)), "k", "3")
	counted(t, open(t, url("rediss", secure, cert, key, "insecure=true")), "k", "4")

	// Whether the refusal arrives before the end of the connection is a matter of luck.
	for _, params := range [][]string{{ca}, {ca, "cert=" + strangers.ClientCert, "key=" + strangers.ClientKey}} {
		err := refuse(t, url("rediss", secure, params...))
		if f := Classify(err); f != FaultUnfit && f != FaultUnreachable || !strings.Contains(Why(err), "cert= and key=") {
			t.Errorf("%v: %s", f, Why(err))
		}
	}
	for _, c := range []struct {
		url   string
		fault Fault
		says  string
	}{
		{url("rediss", secure, cert, key), FaultUnfit, "as ca="},
		{url("rediss", secure, "ca="+strangers.CA, cert, key), FaultUnfit, "as ca="},
		{url("rediss", secure, ca, cert, key, "servername=elsewhere"), FaultUnfit, "as servername="},
		{url("rediss", secure, ca, "cert="+certs.ClientCert, "key="+strangers.ClientKey), FaultUnfit, "cert, key: "},
		{url("rediss", secure, "ca="+certs.CA+".not"), FaultUnfit, "ca: open "},
		{url("rediss", secure, "ca="+certs.ClientKey), FaultUnfit, "holds no certificate"},
		{url("rediss", server.Addr(), ca, cert, key, "timeout=200ms"), FaultUnreachable, "use redis://"},
		{url("rediss", newFake(t, func([]string) string { return "" }).Addr().String()), FaultUnreachable, "cert= and key="},
		{url("rediss", answersAtOnce(t)), FaultUnfit, "does not speak TLS on this port; use redis://"},
		{url("redis", secure), FaultUnreachable, "use rediss://"},
	} {
		expect(t, refuse(t, c.url), c.fault, c.says)
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "r.sock")
	redisrun.New(t, "unixsocket "+socket)
	l := open(t, "redis+unix://"+socket+"?db=3")
	counted(t, l, "k", "1")
	heard := make(chan string, 1)
	listen(t, l, "c", func(m string) { heard <- m }, nil)
	publish(t, l, "c", "hello")
	if got := receive(t, heard); got != "hello" {
		t.Error(got)
	}
}

// Some deployments have a host name or an address for the current master. A demoted master keeps its connections, so the
// link has to renew them.
func TestMasterBehindAnAddress(t *testing.T) {
	t.Parallel()
	first, second := redisrun.New(t), redisrun.New(t)
	address := newCutter(t, first.Addr())
	l := open(t, "redis://"+address.Addr().String())
	missed := make(chan struct{}, 10)
	listen(t, l, "c", func(string) {}, func() { missed <- struct{}{} })
	counted(t, l, "k", "1")
	counted(t, l, "k", "2")
	address.redirect(second.Addr())
	counted(t, l, "k", "3")
	if _, err := first.Do(bounded(t), "REPLICAOF", "127.0.0.1", "1"); err != nil {
		t.Fatal(err)
	}
	_, err := l.Run(bounded(t), count, "k")
	expect(t, err, FaultNotRun, "a replica and takes no writes")
	counted(t, l, "k", "1") // on the second
	receive(t, missed)
}

func TestModeAndServerMustAgree(t *testing.T) {
	t.Parallel()
	single, cluster, sentinel := redisrun.New(t), redisrun.NewCluster(t), redisrun.NewSentinel(t)
	watchers := strings.Join(sentinel.Addrs(), ",")
	for url, says := range map[string]string{
		"redis+cluster://" + single.Addr():                       "not part of a cluster; use redis://",
		"redis+cluster://" + single.Addr() + "," + single.Addr(): "not part of a cluster; use redis://",
		"redis://" + cluster.Addrs()[0]:                          "use redis+cluster://",
		"redis://" + cluster.Addrs()[0] + "/1":                   "only database 0; use redis+cluster://",
		"redis://" + sentinel.Addrs()[0]:                         "use redis+sentinel://",
		"redis+sentinel://" + watchers + "/other":                "watch no master of that name",
	} {
		expect(t, refuse(t, url), FaultUnfit, says)
	}
}

// Scripts run where their keys are, also after the slots have moved.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redisrun.NewCluster(t)
	l := open(t, cluster.URL())
	keys := map[int]string{} // by node
	for i := 0; len(keys) < 3; i++ {
		key := fmt.Sprintf("{pool%d}", i)
		slot, err := cluster.Slot(key)
		if err != nil {
			t.Fatal(err)
		}
		owner, err := cluster.Owner(slot)
		if err != nil {
			t.Fatal(err)
		}
		keys[owner] = key
	}
	for _, key := range keys {
		counted(t, l, key, "1")
		counted(t, l, key, "2")
	}
	slot, err := cluster.Slot(keys[0])
	if err != nil {
		t.Fatal(err)
	}

	// MOVED: another node has the slot, and has never seen the script for it.
	if err := cluster.MoveSlot(slot, 1); err != nil {
		t.Fatal(err)
	}
	counted(t, l, keys[0], "3")
	counted(t, l, keys[0], "4")

	// ASK: the slot is on its way, this key has gone, another never was there.
	move, err := cluster.BeginMove(slot, 2)
	if err != nil {
		t.Fatal(err)
	}
	counted(t, l, keys[0], "5") // still where it was
	if _, err := move.Keys(10); err != nil {
		t.Fatal(err)
	}
	counted(t, l, keys[0], "6")
	counted(t, l, keys[0]+"new", "1")
	if got, err := l.Run(bounded(t), value, keys[0]); err != nil || got != "6" {
		t.Errorf("%q, %v", got, err)
	}
	if err := move.Finish(); err != nil {
		t.Fatal(err)
	}
	counted(t, l, keys[0], "7")
	counted(t, l, keys[0]+"new", "2")

	// A message published on any node is heard on any other.
	heard := make(chan string, 3)
	listen(t, l, "c", func(m string) { heard <- m }, nil)
	for _, key := range keys {
		if _, err := l.Run(bounded(t), publisher, key, "c", key); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, heard); got != key {
			t.Errorf("%q, want %q", got, key)
		}
	}
}

// Two nodes that redirect to each other agree after a moment.
func TestClusterWhoseNodesDisagree(t *testing.T) {
	t.Parallel()
	cluster := redisrun.NewCluster(t)
	l := open(t, cluster.URL())
	key := "{nothing here}"
	slot, err := cluster.Slot(key)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := cluster.Owner(slot)
	if err != nil {
		t.Fatal(err)
	}
	other := (owner + 1) % 3
	id, err := cluster.Nodes()[other].Do(t.Context(), "CLUSTER", "MYID")
	if err != nil {
		t.Fatal(err)
	}
	tell := func(node int) error {
		_, err := cluster.Nodes()[node].Do(context.Background(), "CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", id)
		return err
	}
	if err := tell(owner); err != nil { // and the other one does not know it
		t.Fatal(err)
	}
	told := make(chan error, 1)
	time.AfterFunc(500*time.Millisecond, func() { told <- tell(other) })
	counted(t, l, key, "1")
	if err := <-told; err != nil {
		t.Fatal(err)
	}
	counted(t, l, key, "2")
}

func TestClusterWithANodeDown(t *testing.T) {
	t.Parallel()
	cluster := redisrun.NewCluster(t, "cluster-require-full-coverage yes")
	l := open(t, cluster.URL())
	key := "k"
	slot, err := cluster.Slot(key)
	if err != nil {
		t.Fatal(err)
	}
	owner, err := cluster.Owner(slot)
	if err != nil {
		t.Fatal(err)
	}
	counted(t, l, key, "1")
	var missed atomic.Int64
	listen(t, l, "c", func(string) {}, func() { missed.Add(1) })

	other := cluster.Nodes()[(owner+1)%3]
	if err := other.Kill(); err != nil {
		t.Fatal(err)
	}
	runs := 1
	eventually(t, func() error { // after its node timeout the cluster refuses
		_, err := l.Run(bounded(t), count, key)
		if err == nil {
			runs++
			return errors.New("it still serves")
		}
		expect(t, err, FaultNotRun, "cluster is down")
		return nil
	})
	if err := other.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.WaitOK(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := l.Run(bounded(t), value, key)
		return err
	})
	counted(t, l, key, fmt.Sprint(runs+1))
}

func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	set := redisrun.NewSentinel(t)
	l := open(t, set.URL()+"/2")
	counted(t, l, "k", "1")
	heard, missed := make(chan string, 100), make(chan struct{}, 100)
	listen(t, l, "c", func(m string) { heard <- m }, func() { missed <- struct{}{} })

	old := set.Master()
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := l.Run(bounded(t), count, "k2")
		if f := Classify(err); f != FaultNone && f != FaultUnreachable && f != FaultNotRun {
			t.Fatalf("%v: %v", f, err)
		}
		return err
	})
	if _, err := set.WaitMaster(old); err != nil { // sentinels learn it one by one
		t.Fatal(err)
	}
	receive(t, missed)
	publish(t, l, "c", "hello")
	if got := receive(t, heard); got != "hello" {
		t.Error(got)
	}

	// A failover in which nobody dies: the old master becomes a replica of the new one.
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := set.WaitReplica(); err != nil {
		t.Fatal(err)
	}
	if err := set.Failover(); err != nil {
		t.Fatal(err)
	}
	if err := set.WaitReplica(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := l.Run(bounded(t), count, "k3")
		if f := Classify(err); f != FaultNone && f != FaultUnreachable && f != FaultNotRun {
			t.Fatalf("%v: %v", f, err)
		}
		return err
	})
}
