package retry_test

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice/retry"
)

func ExamplePolicy_Next() {
	policy := retry.Policy{Attempts: 3}
	half := func() float64 { return 0.5 } // real callers pass rand.Float64

	for sent := 1; ; sent++ {
		d := policy.Next(retry.Failure{Sent: sent, Class: "p1"}, half)
		if d.Give {
			fmt.Printf("after send %d: give up (%v)\n", sent, d.Reason)
			break
		}
		fmt.Printf("after send %d: wait %v (%v)\n", sent, d.Wait, d.Reason)
	}
	// Output:
	// after send 1: wait 3s (priority)
	// after send 2: wait 5s (priority)
	// after send 3: give up (attempts)
}

func ExampleParseRetryAfter() {
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"1.5", "Wed, 04 Mar 2026 12:00:30 GMT", "later"} {
		wait, ok := retry.ParseRetryAfter(value, now)
		fmt.Println(wait, ok)
	}
	// Output:
	// 1.5s true
	// 30s true
	// 0s false
}
