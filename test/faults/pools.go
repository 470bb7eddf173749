package main

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// The pools that workers share.
//
// The checks need no tolerance, because a use lies between the grant and the event that tells the store that the
// request has arrived. With a strict guard that event is the answer. With the default guard it is the answer or the end
// of the slack, and workers renew a stale ticket before they use it, as every caller must. So the limits hold exactly
// for a provider without any delay.
const (
	rolling = iota // default settings; most figures are about this pool
	strict         // a rolling window with a strict guard
	bucket
	places
	poolCount
)

// poolNames are the names of the pools' resources.
var poolNames = [poolCount]string{"rolling", "strict", "bucket", "places"}

const (
	window      = 2 * time.Second // of the pools rolling and strict
	rollingSize = 60
	strictSize  = 20

	bucketRate  = 20 // per second
	bucketBurst = 10

	placesSize = 5

	ticketTTL   = 5 * time.Second // life of a ticket that is never closed
	leaseRenew  = 2 * time.Second
	leaseExpire = 30 * time.Second // lease of a silent process, unless the fault sets another
	askWithin   = 3 * time.Second  // deadline of callers that wait
	tryWithin   = time.Second      // deadline of callers that do not wait
)

// resources returns the configuration of the pools.
func resources() map[string]sluice.Resource {
	all := map[string]sluice.Resource{}
	add := func(pool int, guard store.Guard, l sluice.Limit) {
		l.Name = "limit"
		all[poolNames[pool]] = sluice.Resource{Limits: []sluice.Limit{l}, Guard: guard, TTL: ticketTTL}
	}
	add(rolling, store.GuardAuto, sluice.Limit{Kind: sluice.Rolling, Size: rollingSize, Window: window})
	add(strict, store.GuardStrict, sluice.Limit{Kind: sluice.Rolling, Size: strictSize, Window: window})
	add(bucket, store.GuardAuto, sluice.Limit{Kind: sluice.Bucket, Size: bucketRate, Window: time.Second, Burst: bucketBurst})
	add(places, store.GuardAuto, sluice.Limit{Kind: sluice.Concurrency, Size: placesSize})
	return all
}

// gateConfig returns the configuration of every process's gate.
func gateConfig(url string, lease time.Duration) sluice.Config {
	return sluice.Config{
		Store: url, Resources: resources(),
		Leases: sluice.Leases{Renew: leaseRenew, Expire: lease},
	}
}

// admits returns about how many requests the rolling pool grants in a time.
func admits(d time.Duration) float64 { return rollingSize * d.Seconds() / window.Seconds() }
