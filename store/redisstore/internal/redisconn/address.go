package redisconn

import "github.com/sluicehq/sluice/internal/redisurl"

// Address says how to reach Redis. See [redisurl.Address].
type Address = redisurl.Address

// The three deployments.
const (
	Single   = redisurl.Single
	Cluster  = redisurl.Cluster
	Sentinel = redisurl.Sentinel
)

// Parse parses the URL of a Redis. See [redisurl.Parse].
func Parse(raw string) (Address, error) { return redisurl.Parse(raw) }

// Schemes returns the schemes of the URLs that [Parse] reads.
func Schemes() []string { return redisurl.Schemes() }
