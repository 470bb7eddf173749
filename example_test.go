package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore" // for "mem:"
)

// exampleGate opens a gate for a search API that takes so many requests at once.
func exampleGate(places int64) *sluice.Gate {
	gate, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{
		"search": {Limits: []sluice.Limit{{Name: "inflight", Kind: sluice.Concurrency, Size: places}}},
	}})
	if err != nil {
		panic(err)
	}
	return gate
}

// A quota of two requests a minute and thirty an hour, for everyone together. The
// third request of the minute would have to wait for longer than its caller wants to.
func ExampleOpen() {
	ctx := context.Background()
	gate, err := sluice.Open(ctx, sluice.Config{
		Store: "mem:",
		Resources: map[string]sluice.Resource{
			"search": {Limits: []sluice.Limit{
				{Name: "minute", Kind: sluice.Rolling, Size: 2, Window: time.Minute},
				{Name: "hour", Kind: sluice.Rolling, Size: 30, Window: time.Hour},
			}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	for i := range 3 {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "indexer"})
		cancel()
		if refusal := (*sluice.Error)(nil); errors.As(err, &refusal) {
			fmt.Printf("%d: %v (limit %s)\n", i, refusal.Err, refusal.Limit)
			continue
		}
		fmt.Printf("%d: sent\n", i)
		ticket.Close()
	}
	// Output:
	// 0: sent
	// 1: sent
	// 2: not before the deadline (limit minute)
}

func ExampleGate_Acquire() {
	gate := exampleGate(1)
	defer gate.Close()
	ctx := context.Background()

	first, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "crawler"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the crawler sends")
	go first.Close() // sooner or later

	second, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "indexer"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()
	fmt.Println("the indexer sends")
	// Output:
	// the crawler sends
	// the indexer sends
}

func ExampleGate_Try() {
	gate := exampleGate(1)
	defer gate.Close()
	ctx := context.Background()

	held, err := gate.Try(ctx, sluice.Request{Resource: "search", Agent: "crawler"})
	fmt.Println(err)
	_, err = gate.Try(ctx, sluice.Request{Resource: "search", Agent: "indexer"})
	fmt.Println(errors.Is(err, sluice.ErrNotNow), err)
	held.Close()
	// Output:
	// <nil>
	// true search: not now (limit "inflight")
}

// The first try fails for a reason that may pass. Do sends again, after a while that
// depends on the answer, the class of the caller and how often it has tried.
func ExampleGate_Do() {
	gate, err := sluice.Open(context.Background(), sluice.Config{
		Retry: retry.Policy{Attempts: 3, Deadline: time.Minute, Base: time.Millisecond},
		Resources: map[string]sluice.Resource{
			"search": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	tries := 0
	send := func(context.Context, sluice.Ticket) (sluice.Answer, error) {
		if tries++; tries == 1 {
			return sluice.Answer{Verdict: store.VerdictError}, errors.New("connection reset")
		}
		return sluice.Answer{Verdict: store.VerdictOK}, nil
	}
	err = gate.Do(context.Background(), sluice.Request{Resource: "search", Agent: "indexer"}, send)
	fmt.Println(tries, err)
	// Output: 2 <nil>
}

// One caller is told to wait. From then on everybody does.
func ExampleTicket_Answer() {
	gate := exampleGate(10)
	defer gate.Close()
	ctx := context.Background()

	ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "crawler"})
	if err != nil {
		fmt.Println(err)
		return
	}
	held, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: 30 * time.Second})
	fmt.Println(held, err)
	ticket.Close()

	_, err = gate.Try(ctx, sluice.Request{Resource: "search", Agent: "indexer"})
	if refusal := (*sluice.Error)(nil); errors.As(err, &refusal) {
		fmt.Println(refusal.Err, refusal.Reason, time.Until(refusal.RetryAt).Round(time.Minute/2))
	}
	// Output:
	// true <nil>
	// not now paused 30s
}

// What a request really used is known in the end. Until then the estimate counts.
func ExampleTicket_Close() {
	gate, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{
		"model": {Limits: []sluice.Limit{{Name: "tokens", Kind: sluice.Rolling, Size: 50_000, Window: time.Minute, Unit: "tokens"}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	ticket, err := gate.Acquire(context.Background(), sluice.Request{
		Resource: "model", Agent: "writer", Cost: []sluice.Amount{{Unit: "tokens", N: 8_000}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ticket.Close(sluice.Amount{Unit: "tokens", N: 2_500})

	status, err := gate.Status(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(status.Resources[0].Limits[0].Remaining)
	// Output: 47500
}

func ExampleGate_Status() {
	gate := exampleGate(10)
	defer gate.Close()
	ctx := context.Background()
	for _, agent := range []string{"crawler", "crawler", "indexer"} {
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: agent})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer ticket.Close()
	}

	status, err := gate.Status(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range status.Resources {
		fmt.Printf("%s: %d in flight\n", r.Name, r.InFlight)
		for _, l := range r.Limits {
			fmt.Printf("  %s (%s): %d of %d\n", l.Name, l.Kind, l.Used, l.Limit)
		}
		for _, c := range r.Callers {
			fmt.Printf("  %s sent %d\n", c.Agent, c.Sent)
		}
	}
	// Output:
	// search: 3 in flight
	//   inflight (concurrency): 3 of 10
	//   crawler sent 2
	//   indexer sent 1
}

func ExampleGate_Why() {
	gate := exampleGate(1)
	defer gate.Close()
	ctx := context.Background()
	held, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "crawler"})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() {
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "indexer", Class: sluice.P0})
		done <- errors.Join(err, ticket.Close())
	}()

	var waiting []inspect.Waiting
	for len(waiting) == 0 && err == nil { // until the indexer is in line
		waiting, err = gate.Why(ctx, "search")
	}
	for _, w := range waiting {
		fmt.Printf("%s (%s) is number %d: %s %s, held by %v\n", w.Agent, w.Class, w.Position, w.Reason, w.Limit, w.HeldBy)
	}
	held.Close()
	fmt.Println(<-done)
	// Output:
	// indexer (p0) is number 1: limit inflight, held by [crawler]
	// <nil>
}

// Each agent may do 50 units of work at once and 5 a second in the long run. What a
// unit is depends on the tool: an image costs as much as ten searches.
func ExampleLimit_perAgent() {
	gate, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{
		"tools": {Limits: []sluice.Limit{{
			Name: "each-agent", Kind: sluice.Bucket, Size: 5, Window: time.Second, Burst: 50,
			Unit: sluice.Work, Per: []sluice.Scope{sluice.PerAgent},
		}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	try := func(agent, tool string) {
		ticket, err := gate.Try(context.Background(), sluice.Request{Resource: "tools", Agent: agent, Tool: tool})
		fmt.Println(agent, tool, err == nil)
		ticket.Close()
	}
	for range 5 {
		try("painter", "image_generate")
	}
	try("painter", "image_generate")
	try("reader", "web_search")
	// Output:
	// painter image_generate true
	// painter image_generate true
	// painter image_generate true
	// painter image_generate true
	// painter image_generate true
	// painter image_generate false
	// reader web_search true
}

// exampleFleet opens a gate for an API that takes 1000 requests a day.
func exampleFleet(slots int) *sluice.Gate {
	gate, err := sluice.Open(context.Background(), sluice.Config{
		Slots:  sluice.Slots{Max: slots},
		Agents: map[string]sluice.Agent{"writer": {Class: sluice.P0, WaitsFor: []string{"researcher"}}},
		Resources: map[string]sluice.Resource{
			"search": {Limits: []sluice.Limit{{Name: "day", Kind: sluice.Rolling, Size: 1000, Window: 24 * time.Hour}}},
		},
	})
	if err != nil {
		panic(err)
	}
	return gate
}

// A user may have two agents at the same time. The third has to wait until one leaves, or
// until one that died is known to be dead.
func ExampleGate_Join() {
	gate := exampleFleet(2)
	defer gate.Close()
	ctx := context.Background()

	writer, err := gate.Join(ctx, sluice.JoinRequest{Agent: "writer", User: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	researcher, err := gate.Join(ctx, sluice.JoinRequest{Agent: "researcher", User: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer researcher.Leave()

	_, err = gate.Join(ctx, sluice.JoinRequest{Agent: "painter", User: "ann"})
	if refusal := (*sluice.Error)(nil); errors.As(err, &refusal) {
		fmt.Printf("%v, for %v at most\n", refusal.Err, time.Until(refusal.RetryAt).Round(time.Minute))
	}
	writer.Leave()
	painter, err := gate.Join(ctx, sluice.JoinRequest{Agent: "painter", User: "ann"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer painter.Leave()
	fmt.Println(painter.Agent(), "is in")
	// Output:
	// no slot, for 5m0s at most
	// painter is in
}

// The writer needs what the researcher finds, and the provider has just told the researcher
// to wait. What the writer has begun goes on; it is not the time for more.
func ExampleLease_StartNewWork() {
	gate := exampleFleet(0)
	defer gate.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	writer, err := gate.Join(ctx, sluice.JoinRequest{Agent: "writer"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer writer.Leave()

	work, err := writer.StartNewWork(ctx)
	fmt.Println(work.Start, err)

	ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "researcher"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ticket.Answer(sluice.Answer{Verdict: store.VerdictThrottled, RetryAfter: 30 * time.Second})
	ticket.Close()
	done := make(chan error)
	go func() {
		_, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: "researcher"})
		done <- err
	}()
	for work.Start && err == nil { // until the researcher is in line
		work, err = writer.StartNewWork(ctx)
	}
	fmt.Println(work.Start, work.Chain)
	cancel()
	fmt.Println(errors.Is(<-done, sluice.ErrCancelled))
	// Output:
	// true <nil>
	// false [writer researcher]
	// true
}

// Classes hold shares of the quota, 40 to 35 to 25 by default. Those that nobody is alive of
// go to the others.
func ExampleGate_Pool() {
	gate := exampleFleet(0)
	defer gate.Close()
	ctx := context.Background()
	for _, agent := range []string{"writer", "researcher", "painter"} {
		lease, err := gate.Join(ctx, sluice.JoinRequest{Agent: agent})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer lease.Leave()
	}

	pool, err := gate.Pool(ctx, "search")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, agent := range []string{"writer", "researcher", "painter"} {
		a := pool.Allocations[agent]
		fmt.Printf("%s, priority %d: %d of %d\n", agent, a.Priority, a.Allocated, pool.TotalLimit)
	}
	// Output:
	// writer, priority 0: 615 of 1000
	// researcher, priority 2: 192 of 1000
	// painter, priority 2: 192 of 1000
}

func ExampleGate_Report() {
	gate := exampleFleet(0)
	defer gate.Close()
	ctx := context.Background()
	send := func(agent string, retry bool, verdict store.Verdict) {
		ticket, err := gate.Acquire(ctx, sluice.Request{Resource: "search", Agent: agent, Retry: retry})
		if err != nil {
			fmt.Println(err)
			return
		}
		ticket.Answer(sluice.Answer{Verdict: verdict})
		ticket.Close()
	}
	send("researcher", false, store.VerdictOK)
	send("researcher", false, store.VerdictError)
	send("researcher", true, store.VerdictOK)
	send("writer", false, store.VerdictOK)

	report, err := gate.Report(ctx, time.Now().Add(-time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range report.Resources {
		for _, c := range append(r.Callers, r.Total) {
			fmt.Printf("%s %q: %d sends, %d retries, %d failed\n", r.Name, c.Name, c.FirstSends, c.Retries, c.Failed)
		}
	}
	// Output:
	// search "researcher": 2 sends, 1 retries, 1 failed
	// search "writer": 1 sends, 0 retries, 0 failed
	// search "": 3 sends, 1 retries, 1 failed
}

// A resource of which no limit is known, as no answer has stated one yet.
func ExampleGate_Diagnose() {
	gate, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{"search": {}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	diagnosis, err := gate.Diagnose(context.Background(), time.Now().Add(-24*time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range diagnosis.Resources {
		fmt.Printf("%s: %s, %v a minute at most\n", r.Name, r.Verdict, r.PeakPerMin)
		for _, a := range r.Advice {
			fmt.Printf("%s: %s\n", a.Setting, a.Text)
		}
	}
	// Output:
	// search: unknown, 0 a minute at most
	// resources.search.limits: No limit is known: none is configured, and no answer has stated one. State the provider's limits in resources.search.limits, such as {name: minute, size: 80/min}.
}

// Four jobs that cron starts at the same minute, in four processes, are spread over eight
// minutes.
func ExampleGate_StartDelay() {
	gate := exampleFleet(0)
	defer gate.Close()
	for range 4 {
		wait, err := gate.StartDelay(context.Background(), "search", 8*time.Minute)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("start in", wait.Round(time.Minute))
	}
	// Output:
	// start in 0s
	// start in 4m0s
	// start in 2m0s
	// start in 6m0s
}

// The last fifth of a day's quota is for the highest class, and the last twentieth for
// emergencies. By default both shrink as the reset comes nearer; here they do not.
func ExampleResource_light() {
	gate, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{
		"search": {
			Limits: []sluice.Limit{{Name: "day", Kind: sluice.Fixed, Size: 100, Window: 24 * time.Hour, Reset: time.Now().Add(12 * time.Hour)}},
			Light:  sluice.Light{Static: true},
		},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gate.Close()

	try := func(req sluice.Request) {
		for n := 0; ; n++ {
			ticket, err := gate.Try(context.Background(), req)
			if refusal := (*sluice.Error)(nil); errors.As(err, &refusal) {
				fmt.Printf("%s sends %d, then: %s\n", req.Agent, n, refusal.Reason)
				return
			}
			ticket.Close()
		}
	}
	try(sluice.Request{Resource: "search", Agent: "crawler"})
	try(sluice.Request{Resource: "search", Agent: "assistant", Class: sluice.P0})
	try(sluice.Request{Resource: "search", Agent: "operator", Class: sluice.P0, Emergency: true})
	// Output:
	// crawler sends 80, then: light
	// assistant sends 15, then: light
	// operator sends 5, then: limit
}
