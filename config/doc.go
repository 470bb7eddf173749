// Package config reads the configuration file, one YAML file, strictly. Every field has a default. Every mistake is
// reported with file, line, column, field and what was expected. docs/configuration.md describes every field.
//
// [Load] and [Parse] return a [File] with the defaults filled in; [File.GateConfig] turns it into the configuration
// that [sluice.Open] needs. The gate uses these fields: store, on_store_failure, resources (of each: guard, use, split,
// arrival_slack, max_waiting, max_meters, ttl, light, breaker, backoff, reserve, limits), order, classes, shares,
// pacing, cascade, leases, slots, retry_windows, agents (class, user, waits_for), tools, retry, and budgets and routes
// together with prices.
//
// The other fields are checked here and kept in the File. The proxy (package daemon) uses listen, tls, tokens, and of a
// resource provider, upstream, client_deadline, inject and abort. The daemon posts alerts. The command line uses
// key_env and upstream_ca.
package config
