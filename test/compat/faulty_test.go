//go:build slow && (linux || darwin)

package compat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// plants make of this version one in which applying an operation of the agent "poison" fails, half done, and in which an
// operation of the agent "odd" damages the replica of a process that has DAMAGED set. Nobody else has that code.
func plants() []built.Edit {
	return []built.Edit{
		{File: "internal/replica/planted.go", New: `package replica

import (
	"os"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

var damage sync.Once

func planted(r *Replica, p *process, ops []store.Op) {
	for i := range ops {
		switch {
		case ops[i].Kind == store.OpAcquire && ops[i].Agent == "poison":
			panic("planted by a test")
		case ops[i].Kind == store.OpAcquire && ops[i].Agent == "odd" && os.Getenv("DAMAGED") != "":
			damage.Do(func() {
				r.pool.Apply(r.Now(), []store.Op{{
					Kind: store.OpAcquire, ID: store.ID{Session: p.id | 1, N: 1 << 40}, Agent: "nobody", TTL: time.Hour, Force: true,
					Amounts: []store.Amount{{Unit: "requests", N: 1}},
				}})
			})
		}
	}
}
`},
		{File: "internal/replica/apply.go", Old: "	r.step(r.Now(), ops)\n	var s *session\n", New: "	r.step(r.Now(), ops)\n	planted(r, p, ops)\n	var s *session\n"},
	}
}

// Entries at which every process fails are passed over by all, under load, while processes end and others begin. Only the
// request in them fails, and people learn of it.
func TestAnEntryThatFailsKeepsNobodyDown(t *testing.T) {
	binary := changed(t, plants()...)
	r := beginWith(t, 200)
	store := stores[1].open(r)
	fleet := []*daemon{r.mustServe(binary, store), r.mustServe(binary, store), r.mustServe(binary, store)}
	load := r.load(fleet...)
	load.more(200)
	for i := range 6 {
		if status, text := fleet[0].get("poisoner", "poison"); status != http.StatusServiceUnavailable || !strings.Contains(text, "planted") {
			t.Errorf("a request that no process can carry out: %d %s", status, text)
		}
		if n := i / 2; i%2 == 1 && n > 0 { // the first one stays
			d := r.mustServe(binary, store) // it finds the entries in the log
			load.use(n, d)
			fleet[n].stop()
			fleet[n] = d
		}
		load.more(100)
	}
	load.more(200)
	load.stop()
	for i, d := range fleet {
		// Newer processes find only those after the latest snapshot.
		if n := d.metric("sluice_log_poisoned_total"); n < 0 || i == 0 && n < 6 {
			t.Errorf("process %d has counted %d entries that make it fail", i, n)
		}
	}
	r.told(fleet[0], binary, store, "an entry of the log makes Sluice fail", "planted by a test")
	r.judge(nil)
}

// A process whose replica is damaged notices that others decide otherwise, and loads it anew. No request is lost.
func TestADamagedReplicaIsRepaired(t *testing.T) {
	binary := changed(t, plants()...)
	r := beginWith(t, 200)
	store := stores[1].open(r)
	damaged := r.mustServe(binary, store, "DAMAGED=1")
	fleet := []*daemon{damaged, r.mustServe(binary, store), r.mustServe(binary, store)}
	load := r.load(fleet...)
	load.more(200)
	if status, text := fleet[1].get("odd one", "odd"); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if !soon(func() bool { return damaged.metric("sluice_replica_divergence_total") > 0 }) {
		t.Error("nobody notices the damage")
	}
	load.more(200)
	counted := damaged.metric("sluice_replica_divergence_total")
	load.more(600) // several seconds: each second every process says what it has decided
	if n := damaged.metric("sluice_replica_divergence_total"); n > counted {
		t.Errorf("the replicas still differ: counted %d times, then %d", counted, n)
	}
	load.stop()
	r.told(damaged, binary, store, "two processes have decided differently", "")
	r.judge(nil)
}

// told checks that a daemon has logged a fault, and that doctor names it.
func (r *rig) told(d *daemon, binary, store, what, why string) {
	r.Helper()
	out, err := r.command(binary, store, "doctor").CombinedOutput()
	said := strings.ToLower(strings.Join(strings.Fields(string(out)), " "))
	if err != nil || !strings.Contains(said, strings.ToLower(what)) || !strings.Contains(said, why) || !strings.Contains(said, "what to do: ") {
		r.Errorf("doctor does not say %q: %v %s", what, err, out)
	}
	d.stop()
	if log := d.stderr.String(); !strings.Contains(log, what) || !strings.Contains(log, why) || !strings.Contains(log, "hint") {
		r.Errorf("the log does not say %q:\n%s", what, log)
	}
}
