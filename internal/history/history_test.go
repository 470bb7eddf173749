package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// send is a request that waits, goes, is answered and says what it used.
func send(b *Book, ticket, agent, model string, took time.Duration, usage map[string]int64) {
	b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventSend, Resource: "api", Ticket: ticket, Agent: agent, Class: "p1", Model: model, WaitedMS: 40, Units: map[string]int64{"usd": 900}})
	time.Sleep(took)
	b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventAnswer, Resource: "api", Ticket: ticket, Status: 200, Verdict: "ok"})
	if usage != nil {
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventUsage, Resource: "api", Ticket: ticket, Units: usage})
	}
}

func open(t *testing.T, dir string) *Book {
	t.Helper()
	b := Open(Options{Dir: dir, Failed: func(err error) { t.Errorf("not kept: %v", err) }})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func shut(t *testing.T, b *Book) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.stop, b.done = make(chan struct{}), make(chan struct{})
	close(b.done) // so that it can be closed again
}

func past(t *testing.T, b *Book, since time.Duration, step time.Duration) *Answer {
	t.Helper()
	a, err := b.Read(Query{Since: time.Now().Add(-since), Until: time.Now(), Step: step, Resources: true, Models: true, Agents: true, Most: 100, Events: 100})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Figures and events of each minute survive a restart, by resource, model and agent.
func TestHistoryOutlivesARestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		send(b, "api.1", "ana", "opus", 300*time.Millisecond, map[string]int64{"input_tokens": 100, "output_tokens": 20, "usd": 700})
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventThrottled, Resource: "api", Agent: "ana", Model: "opus", Status: 429})
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventPause, Resource: "api", Reason: "a 429", ForMS: 1000})
		time.Sleep(3 * time.Minute)
		send(b, "api.2", "bob", "haiku", time.Second, nil)
		shut(t, b)
		b = open(t, dir)
		send(b, "api.3", "bob", "haiku", time.Second, nil) // in the same minute
		a := past(t, b, time.Hour, time.Minute)
		if len(a.Resources) != 1 || len(a.Models) != 2 || len(a.Agents) != 2 {
			t.Fatalf("%+v", a)
		}
		r := a.Resources[0]
		if r.Name != "api" || len(r.Points) != 2 || r.Points[1].At.Sub(r.Points[0].At) != 3*time.Minute {
			t.Fatalf("%+v", r)
		}
		want := Figures{Sends: 3, Waits: 3, WaitedMS: 120, Throttled: 1, Answers: 3, LatencyMS: 2300, Input: 100, Output: 20, Micros: 2500, Guessed: 1800}
		got := r.Total.Figures
		got.Slow = [latencyBuckets]int64{}
		if got != want {
			t.Errorf("the total is %+v, want %+v", got, want)
		}
		if r.Classes["p1"] != 3 || r.Points[1].Figures.Sends != 2 || *r.Total.P50MS < 500 || *r.Total.P50MS > 1100 {
			t.Errorf("%+v", r)
		}
		if m := a.Models[0]; m.Resource != "api" || m.Name != "haiku" || m.Total.Sends != 2 {
			t.Errorf("%+v", m)
		}
		if w := a.Agents[1]; w.Name != "ana" || w.Total.USD != 0.0007 || w.Total.GuessedUSD != 0 {
			t.Errorf("%+v", w)
		}
		if len(a.Events) != 2 || a.Events[0].Kind != inspect.EventPause && a.Events[1].Kind != inspect.EventPause || a.KeptSince == nil {
			t.Errorf("%+v since %v", a.Events, a.KeptSince)
		}
		if a := past(t, b, time.Minute, time.Minute); len(a.Agents) != 1 {
			t.Errorf("what was earlier is there too: %+v", a.Agents)
		}
	})
	for _, name := range []string{"minutes-20000101.bin", "events-20000101.jsonl"} { // the bubble's clock begins there
		info, err := os.Stat(filepath.Join(dir, "history", name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

// The last minute is always the last sixty seconds.
func TestTheLastMinuteIsTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "")
		time.Sleep(50 * time.Second)
		for i := range 5 {
			send(b, fmt.Sprint("api.", i), "ana", "opus", 0, nil)
		}
		time.Sleep(20 * time.Second) // the minute of the clock is another one
		send(b, "api.9", "ana", "opus", 0, nil)
		n := b.Now(10)
		if len(n.Resources) != 1 || n.Resources[0].Sends != 6 || n.Agents[0] != (LastMinute{Name: "ana", Sends: 6}) || len(n.Requests) != 6 {
			t.Errorf("%+v", n)
		}
		time.Sleep(41 * time.Second)
		if n := b.Now(0); n.Resources[0].Sends != 1 {
			t.Errorf("after 61 s: %+v", n)
		}
		time.Sleep(time.Minute)
		if n := b.Now(0); len(n.Resources) != 0 {
			t.Errorf("after two minutes: %+v", n)
		}
	})
}

// An incomplete frame loses only that minute. The next minute follows the last intact one.
func TestATornWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := t.TempDir()
		b := open(t, whole)
		for i := range 3 {
			send(b, fmt.Sprint("api.", i), fmt.Sprint("agent-", i), "opus", 0, nil)
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		shut(t, b)
		text, err := os.ReadFile(filepath.Join(whole, "history", "minutes-20000101.bin"))
		if err != nil {
			t.Fatal(err)
		}
		for cut := 0; cut < len(text); cut += 3 {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "history"), 0o700); err != nil {
				t.Fatal(err)
			}
			torn := append([]byte{}, text[:len(text)-1-cut]...)
			if cut%2 == 0 {
				torn = append(torn, "\xff\x03garbage"...)
			}
			if err := os.WriteFile(filepath.Join(dir, "history", "minutes-20000101.bin"), torn, 0o600); err != nil {
				t.Fatal(err)
			}
			b := open(t, dir)
			send(b, "api.9", "late", "opus", 0, nil)
			shut(t, b)
			b = open(t, dir)
			a := past(t, b, time.Hour, time.Minute)
			shut(t, b)
			sound := 0
			for _, s := range a.Agents {
				if strings.HasPrefix(s.Name, "agent-") && s.Total.Sends == 1 {
					sound++
				} else if s.Name != "late" || s.Total.Sends != 1 {
					t.Fatalf("cut %d: %+v", cut, s)
				}
			}
			if len(a.Agents) != sound+1 || sound < 2 && cut < 20 {
				t.Fatalf("cut %d: %d minutes are left, and %d agents", cut, sound, len(a.Agents))
			}
		}
	})
}

// Whatever the names of callers, a minute stays within its bound. Names without room are counted together.
func TestNamesAreBounded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		const n = 20_000
		long := strings.Repeat("x", 300)
		for i := range n {
			name := fmt.Sprint("agent-", i, long)
			b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventSend, Resource: fmt.Sprint("api-", i%1000, long), Ticket: fmt.Sprint("api.", i), Agent: name, Class: name, Model: fmt.Sprint("model-", i, long), WaitedMS: 1 << 40})
			b.Event(inspect.Event{Time: time.Now().Add(time.Duration(i) * time.Second), Kind: inspect.EventAnswer, Ticket: fmt.Sprint("api.", i), Status: 500})
		}
		if b.tickets.Len() > maxTickets || len(b.live.all[ofAgent]) > maxAgents+1 || len(b.now.rows[ofAgent]) > maxAgents+1 || len(b.other.sent) > maxAgents+maxResources {
			t.Error("memory is not bounded")
		}
		names := newNames()
		first := encode(b.now, names)
		if rest := len(first) - maxNames*(maxName+2); rest > MaxMinute || len(names.list) > maxNames+kinds {
			t.Errorf("a minute has %d bytes besides %d names", rest, len(names.list))
		}
		names.fresh = nil
		if again := len(encode(b.now, names)); again > MaxMinute {
			t.Errorf("a minute has %d bytes", again)
		}
		time.Sleep(2 * time.Minute)
		a := past(t, b, time.Hour, time.Minute)
		for _, list := range [][]Series{a.Resources, a.Models, a.Agents} {
			total := int64(0)
			for _, s := range list {
				total += s.Total.Sends
			}
			if last := list[len(list)-1]; last.Name != Other || total != n || len(list) < 20 || len(list) > 101 {
				t.Errorf("%d names, the last is %.20q, %d sends", len(list), last.Name, total)
			}
		}
	})
}

// Files older than a week are removed. A clock that is set back loses nothing.
func TestOldFilesGo(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := open(t, dir)
		for range 10 {
			send(b, fmt.Sprint("api.", time.Now().Unix()), "ana", "", 0, nil)
			b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventResume, Resource: "api"})
			time.Sleep(24 * time.Hour)
		}
		shut(t, b)
		list, err := os.ReadDir(filepath.Join(dir, "history"))
		if err != nil || len(list) != 1+2*(Days+1) { // and the lock
			t.Errorf("%v, %v", list, err)
		}
		b = open(t, dir)
		if a := past(t, b, 7*24*time.Hour, time.Hour); a.Resources[0].Total.Sends != 7 || len(a.Events) != 7 {
			t.Errorf("%+v", a)
		}
	})
}

// A flood of one kind of events leaves room for others, and its dropped events are counted.
func TestAFloodOfEvents(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		synctest.Test(t, func(t *testing.T) {
			b := open(t, dir)
			for range 1000 {
				b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventRefused, Resource: "api", Reason: "budget"})
			}
			b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventStoreLost, Resource: "api"})
			time.Sleep(time.Minute + time.Second)
			a := past(t, b, time.Hour, time.Minute)
			if len(a.Events) != burstEvents+2 || a.Events[0].Kind != inspect.EventDropped || a.Events[0].Reason != inspect.EventRefused || a.Events[0].Count != 1000-burstEvents {
				t.Errorf("%d events, the newest is %+v", len(a.Events), a.Events[0])
			}
			some, err := b.Read(Query{Since: time.Now().Add(-time.Hour), Until: time.Now(), Most: 1, Events: 10, Kind: inspect.EventRefused})
			if err != nil || len(some.Events) != 10 || some.MoreEvents != burstEvents-10 {
				t.Errorf("%d events and %d more, %v", len(some.Events), some.MoreEvents, err)
			}
		})
	}
}

// Events of other processes in the event log count. This process's own events there are not counted twice.
func TestOtherProcessesCount(t *testing.T) {
	dir := t.TempDir()
	own, other := eventlog.Open(dir), eventlog.Open(dir)
	b := Open(Options{Log: dir, Process: own.Process()})
	defer b.Close()
	tell := func(w *eventlog.Writer, ticket, agent string) inspect.Event {
		e := inspect.Event{Time: time.Now().UTC(), Kind: inspect.EventSend, Resource: "api", Ticket: ticket, Agent: agent}
		w.Add(e)
		return e
	}
	b.Event(tell(own, "api.1", "here"))
	tell(other, "api.2", "there")
	for _, w := range []*eventlog.Writer{own, other} {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); len(b.Now(0).Agents) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", b.Now(10))
		}
	}
	for _, a := range b.Now(0).Agents {
		if a.Sends != 1 {
			t.Errorf("%+v", a)
		}
	}
}

// What other machines send is known from the store, a little later.
func TestOtherMachinesCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "")
		c := sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{{Name: "l", Kind: sluice.Rolling, Size: 1000, Window: time.Minute}}}}}
		st, err := store.Open(t.Context(), c.Store)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		there, err := sluice.OpenWithStore(t.Context(), st, c)
		if err != nil {
			t.Fatal(err)
		}
		defer there.Close()
		c.Events = b.Event
		here, err := sluice.OpenWithStore(t.Context(), st, c)
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		b.SetGate(here)
		for i := range 30 {
			g, agent := here, "ana"
			if i%3 > 0 {
				g, agent = there, "far"
			}
			tk, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: agent})
			if err != nil {
				t.Fatal(err)
			}
			if err := tk.Close(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		a := past(t, b, time.Hour, time.Minute)
		if r := a.Resources[0].Total; r.Sends != 10 || r.Elsewhere != 20 {
			t.Errorf("%+v", r)
		}
		if len(a.Agents) != 2 || a.Agents[0].Name != "far" || a.Agents[0].Total.Elsewhere != 20 || a.Agents[1].Total.Elsewhere != 0 {
			t.Errorf("%+v", a.Agents)
		}
	})
}

// A request without a response is one error. A request whose client left is none.
func TestRequestsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "")
		for _, ticket := range []string{"api.1", "api.2", "api.3"} {
			b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventSend, Resource: "api", Ticket: ticket, Agent: map[bool]string{true: "bob", false: "ana"}[ticket == "api.1"], Retry: true, WaitedMS: 9})
		}
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventUpstream, Resource: "api", Agent: "bob", Reason: "refused", Error: "connection refused"})
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventCancel, Ticket: "api.1"})
		b.Done(sluicehttp.Exchange{Ticket: "api.2", Took: time.Second, Aborted: true})
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventAnswer, Ticket: "api.3", Status: 503, Verdict: "overloaded"})
		b.Done(sluicehttp.Exchange{Ticket: "api.3", Status: 503, Took: time.Second})
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventSend, Resource: "api", Ticket: "api.4", Agent: "ana"})
		b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventCancel, Ticket: "api.4"})
		n := b.Now(10)
		states := []string{}
		for _, q := range n.Requests {
			states = append(states, q.State)
		}
		if got := strings.Join(states, " "); got != "unsent failed left failed" || n.Resources[0].Errors != 2 || n.Resources[0].Sends != 2 {
			t.Errorf("%s, %+v", got, n.Resources)
		}
		if a := past(t, b, time.Hour, time.Minute); a.Resources[0].Total.Sends != 2 || a.Resources[0].Total.Errors != 2 || a.Resources[0].Total.Retries != 2 || a.Resources[0].Total.WaitedMS != 18 {
			t.Errorf("%+v", a.Resources)
		}
	})
}

// Two daemons of one directory do not write into each other's files: the second one reads.
func TestOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := open(t, dir)
		var said error
		second := Open(Options{Dir: dir, Failed: func(err error) { said = err }})
		if !errors.Is(said, errBusy) {
			t.Errorf("the second says %v", said)
		}
		send(b, "api.1", "ana", "", 0, nil)
		send(second, "api.2", "bob", "", 0, nil)
		time.Sleep(2 * time.Minute)
		if a := past(t, second, time.Hour, time.Minute); len(a.Agents) != 1 || a.Agents[0].Name != "ana" {
			t.Errorf("%+v", a.Agents)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A link in place of a file, or of the directory, is not followed.
func TestLinksAreNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, what := range []string{"history", "history/minutes-20000101.bin", "history/events-20000101.jsonl"} {
			dir, away := t.TempDir(), filepath.Join(t.TempDir(), "away")
			if err := os.WriteFile(away, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if what != "history" {
				if err := os.Mkdir(filepath.Join(dir, "history"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(away, filepath.Join(dir, what)); err != nil {
				t.Fatal(err)
			}
			var said error
			b := Open(Options{Dir: dir, Failed: func(err error) { said = err }})
			send(b, "api.1", "ana", "", 0, nil)
			b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventResume, Resource: "api"})
			_ = b.Close()
			if text, err := os.ReadFile(away); !errors.Is(said, statedir.ErrLink) || err != nil || len(text) > 0 {
				t.Errorf("%s: it says %v; behind the link there is %q, %v", what, said, text, err)
			}
		}
	})
}

// A thousand requests a second are counted in a small part of a core.
func BenchmarkRequest(b *testing.B) {
	book := Open(Options{})
	defer book.Close()
	i := 0
	for b.Loop() {
		i++
		ticket, agent, now := fmt.Sprint("api.", i), fmt.Sprint("agent-", i%10_000), time.Now()
		book.Event(inspect.Event{Time: now, Kind: inspect.EventSend, Resource: "api", Ticket: ticket, Agent: agent, Class: "p1", Model: "opus"})
		book.Event(inspect.Event{Time: now, Kind: inspect.EventAnswer, Resource: "api", Ticket: ticket, Status: 200})
		book.Event(inspect.Event{Time: now, Kind: inspect.EventUsage, Resource: "api", Ticket: ticket, Units: map[string]int64{"input_tokens": 10}})
	}
}

// Without files a minute of thousands of agents took megabytes, a day of them gigabytes.
func TestMemoryWithoutFilesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "")
		const minutes, agents = 5, 3 * maxAgents
		begin := time.Now()
		for range minutes {
			for i := range agents {
				b.Event(inspect.Event{Time: time.Now(), Kind: inspect.EventSend, Resource: "api", Agent: fmt.Sprint("agent-", i)})
			}
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		size := 0
		b.mu.Lock()
		for _, frame := range b.kept {
			size += len(frame)
		}
		n := len(b.kept)
		b.mu.Unlock()
		if n != minutes || size > minutes*4*MaxMinute {
			t.Errorf("%d minutes take %d bytes", n, size)
		}
		a := past(t, b, time.Hour, time.Minute)
		if len(a.Resources) != 1 || a.Resources[0].Total.Sends != minutes*agents || len(a.Resources[0].Points) != minutes {
			t.Errorf("%+v", a.Resources)
		}
		if a.KeptSince == nil || a.KeptSince.Sub(begin).Abs() > time.Minute {
			t.Errorf("kept since %v, began at %v", a.KeptSince, begin)
		}
	})
}

// A cancel after the answer took back a request that had been sent.
func TestAnsweredRequestsAreNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "")
		for _, kind := range []string{inspect.EventSend, inspect.EventAnswer, inspect.EventCancel} {
			b.Event(inspect.Event{Time: time.Now(), Kind: kind, Resource: "api", Ticket: "api.1-1", Agent: "ana", Status: 200, Verdict: "ok"})
		}
		if n := b.Now(10); n.Resources[0].Sends != 1 || n.Requests[0].State != Done {
			t.Errorf("%+v", n)
		}
	})
}
