// Package hosts runs a fleet on three hosts, which are network namespaces of this machine. Each host has a daemon and
// agents; they share a Redis with a replica and Sentinels, and a strict provider. The test cuts a host off and
// reconnects it, kills a host, fails Redis over, and upgrades the fleet from the previous release host by host. The
// provider's log shows whether the limits held.
//
// It needs Linux and root: make hosts.
package hosts
