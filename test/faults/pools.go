package main

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// The pools that workers share.
//
// A use lies between the grant and what tells the store that the request has arrived. With a strict guard that is
// the answer alone; with the usual one it is the answer or the end of the slack, and workers renew a ticket that has
// become stale before they use it, as everybody must. So for a provider to which nothing takes time the limits are
// kept exactly, and the checks need no tolerance.
const (
	rolling = iota // as it comes: most figures are about this one
	strict         // a rolling window with a strict guard
	bucket
	places
	poolCount
)

// poolNames are the names of the resources.
var poolNames = [poolCount]string{"rolling", "strict", "bucket", "places"}

const (
	window      = 2 * time.Second // of both rolling limits
	rollingSize = 60
	strictSize  = 20

	bucketRate  = 20 // a second
	bucketBurst = 10

	placesSize = 5

	ticketTTL   = 5 * time.Second // of a ticket that is never closed
	leaseRenew  = 2 * time.Second
	leaseExpire = 30 * time.Second // of a process that is not heard of, unless the fault says otherwise
	askWithin   = 3 * time.Second  // deadline of those who wait
	tryWithin   = time.Second      // deadline of those who do not
)

// resources are the pools as a gate wants them.
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

// gateConfig is how every process opens the gate.
func gateConfig(url string, lease time.Duration) sluice.Config {
	return sluice.Config{
		Store: url, Resources: resources(),
		Leases: sluice.Leases{Renew: leaseRenew, Expire: lease},
	}
}

// admits is how many requests the rolling pool lets go in a stretch of time, about.
func admits(d time.Duration) float64 { return rollingSize * d.Seconds() / window.Seconds() }
