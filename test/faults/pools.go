package main

import (
	"time"

	"github.com/sluicehq/sluice"
)

// The pools that workers share. The guard is strict: a charge begins with the grant and comes back one
// window after the store has heard that the request is over. A use lies between the two, so for a provider
// to which nothing takes time the limit is kept exactly, and the checks need no tolerance.
const (
	rolling = iota
	bucket
	places
	poolCount
)

// poolNames are the names of the resources.
var poolNames = [poolCount]string{"rolling", "bucket", "places"}

const (
	window      = 2 * time.Second // of the rolling limit
	rollingSize = 60

	bucketRate  = 20 // a second
	bucketBurst = 10

	placesSize = 5

	ticketTTL   = 5 * time.Second // of a ticket that is never closed
	leaseRenew  = 2 * time.Second
	leaseExpire = 10 * time.Second // of a process that is not heard of
	askWithin   = 3 * time.Second  // deadline of those who wait
	tryWithin   = time.Second      // deadline of those who do not
)

// resources are the pools as a gate wants them.
func resources() map[string]sluice.Resource {
	of := func(l sluice.Limit) sluice.Resource {
		return sluice.Resource{Limits: []sluice.Limit{l}, Guard: sluice.GuardStrict, TTL: ticketTTL}
	}
	return map[string]sluice.Resource{
		poolNames[rolling]: of(sluice.Limit{Name: "window", Kind: sluice.Rolling, Size: rollingSize, Window: window}),
		poolNames[bucket]:  of(sluice.Limit{Name: "rate", Kind: sluice.Bucket, Size: bucketRate, Window: time.Second, Burst: bucketBurst}),
		poolNames[places]:  of(sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: placesSize}),
	}
}

// gateConfig is how every process opens the gate.
func gateConfig(url string) sluice.Config {
	return sluice.Config{
		Store: url, Resources: resources(),
		Leases: sluice.Leases{Renew: leaseRenew, Expire: leaseExpire},
	}
}

// admits is how many requests a pool lets go in a stretch of time, about; 0 if nothing says.
func admits(pool int, d time.Duration) float64 {
	switch pool {
	case rolling:
		return rollingSize * d.Seconds() / window.Seconds()
	case bucket:
		return bucketBurst + bucketRate*d.Seconds()
	}
	return 0
}
