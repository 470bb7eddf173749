package sim_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// A provider with several limits accepts what all of them admit. A refusal changes none of them.
func TestProviderIsAllOrNothing(t *testing.T) {
	limits := []sim.Limit{
		{Name: "a", Kind: store.Rolling, Unit: sim.Requests, Size: 5, Window: time.Second},
		{Name: "b", Kind: store.Bucket, Unit: sim.Tokens, Size: 100, Burst: 40, Window: time.Second},
		{Name: "c", Kind: store.Fixed, Unit: sim.Points, Size: 30, Window: 3 * time.Second},
	}
	rapid.Check(t, func(t *rapid.T) {
		p := sim.NewProvider(limits, sim.Policy{})
		a, b, c := limits[0].Rule(), limits[1].Rule(), limits[2].Rule()
		at := sim.Epoch
		for range 60 {
			at += store.Time(rapid.Int64Range(0, 300_000).Draw(t, "gap"))
			r := &sim.Request{Input: rapid.Int64Range(1, 40).Draw(t, "tokens"), Write: rapid.Bool().Draw(t, "write")}
			points := int64(1)
			if r.Write {
				points = 5
			}
			want := a.Earliest(at, 1) == at && b.Earliest(at, r.Input) == at && c.Earliest(at, points) == at
			if got := p.Arrive(at, r); got.Accepted != want {
				t.Fatalf("accepted %v, want %v", got.Accepted, want)
			}
			if want {
				a.Take(at, 1)
				b.Take(at, r.Input)
				c.Take(at, points)
			}
		}
	})
}

func TestRejectedSendsCountWhereTheProviderSaysSo(t *testing.T) {
	limits := []sim.Limit{{Name: "minute", Kind: store.Rolling, Unit: sim.Requests, Size: 2, Window: time.Minute}}
	for _, counts := range []bool{false, true} {
		p := sim.NewProvider(limits, sim.Policy{RejectedCount: counts})
		for second := range 3 {
			p.Arrive(sim.Epoch.Add(time.Duration(second)*time.Second), &sim.Request{})
		}
		// At 60 s the first charge ends. If the refused third request counts, two remain.
		got := p.Arrive(sim.Epoch.Add(time.Minute), &sim.Request{}).Accepted
		if got == counts {
			t.Errorf("rejected sends count: %v; accepted at the end: %v", counts, got)
		}
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	limits := []sim.Limit{{Name: "minute", Kind: store.Rolling, Unit: sim.Requests, Size: 1, Window: time.Minute}}
	p := sim.NewProvider(limits, sim.Policy{RetryAfter: true})
	p.Arrive(sim.Epoch, &sim.Request{})
	resp := p.Arrive(sim.Epoch.Add(1500*time.Millisecond), &sim.Request{})
	if resp.Accepted || resp.Limited != 0 || resp.RetryAfter != 59*time.Second {
		t.Fatalf("got %+v, want refused by limit 0 for 59 s", resp)
	}
}

func TestGitHub(t *testing.T) {
	commit := &sim.Request{Write: true, Create: true}
	limits, policy := sim.GitHub()
	p := sim.NewProvider(limits, policy)
	refused := func(resp sim.Response) string {
		if resp.Limited < 0 {
			return ""
		}
		return limits[resp.Limited].Name
	}
	send := func(at time.Duration, r *sim.Request) sim.Response {
		resp := p.Arrive(sim.Epoch.Add(at), r)
		if resp.Accepted {
			p.Done(sim.Epoch.Add(at), r)
		}
		return resp
	}
	for range 80 {
		if resp := send(0, commit); !resp.Accepted {
			t.Fatalf("one of the first 80 commits is refused by %s", refused(resp))
		}
	}
	if got := refused(send(59*time.Second, commit)); got != "content-minute" {
		t.Errorf("the 81st within a minute is refused by %q", got)
	}
	// 80 writes have used 400 of the 900 points.
	for range 500 {
		if resp := send(59*time.Second, &sim.Request{}); !resp.Accepted {
			t.Fatalf("a read is refused by %s", refused(resp))
		}
	}
	if got := refused(send(59*time.Second, &sim.Request{})); got != "points" {
		t.Errorf("a read beyond 900 points is refused by %q", got)
	}
	for minute := time.Duration(2); minute <= 6; minute++ {
		for range 80 {
			send(minute*time.Minute, commit)
		}
	}
	for range 20 {
		send(8*time.Minute, commit)
	}
	resp := send(8*time.Minute, commit)
	if got := refused(resp); got != "content-hour" {
		t.Errorf("the 501st within an hour is refused by %q", got)
	}
	if len(resp.Headers) != 1 || resp.Headers[0].Size != 5000 || resp.Headers[0].Remaining != 5000-500-500 ||
		resp.Headers[0].ResetIn != 9*time.Minute {
		t.Errorf("headers %+v: only the hourly quota is stated", resp.Headers)
	}
}

func TestAnthropicCountsPerModelAndAsProduced(t *testing.T) {
	limits, policy := sim.Anthropic(10, 1000, 100)
	p := sim.NewProvider(limits, policy)
	opus := &sim.Request{Model: "opus", Input: 300, Estimate: 800, Output: 150}
	if !p.Arrive(sim.Epoch, opus).Accepted {
		t.Fatal("the first request is refused")
	}
	if resp := p.Arrive(sim.Epoch, opus); resp.Accepted || limits[resp.Limited].Name != "input" {
		t.Fatalf("input is not counted as estimated: %+v", resp)
	}
	if !p.Arrive(sim.Epoch, &sim.Request{Model: "haiku", Input: 300, Output: 1}).Accepted {
		t.Fatal("another model is held up")
	}
	p.Done(sim.Epoch, opus)
	small := &sim.Request{Model: "opus", Input: 600, Output: 1}
	if at, _ := p.EarliestAccept(sim.Epoch, small); at != sim.Epoch {
		t.Fatal("the estimate is not corrected when the answer is over")
	}
	p.Produce(sim.Epoch, opus, 150)
	resp := p.Arrive(sim.Epoch, small)
	if resp.Accepted || limits[resp.Limited].Name != "output" {
		t.Fatalf("output is not counted: %+v", resp)
	}
	// 150 of 100 produced: one token is free when 51 have flowed back, in 30.6 s.
	if resp.RetryAfter != 31*time.Second {
		t.Errorf("retry after %v, want 31 s", resp.RetryAfter)
	}
}
