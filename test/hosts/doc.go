// Package hosts runs a fleet on three hosts, which are network namespaces of this machine: Redis with a replica and
// Sentinels, a daemon and agents on each, and a strict provider. It cuts a host off and heals it, kills a host, fails
// Redis over, and upgrades the fleet from the previous release host by host. The provider's log is the judge.
//
// It needs Linux and root: make hosts.
package hosts
