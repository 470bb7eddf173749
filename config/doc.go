// Package config reads the configuration file: one YAML file, strictly. Every field has a
// default, and every mistake is told with file, line, column, field and what was expected.
// docs/configuration.md describes every field.
//
// [Load] and [Parse] return a [File] with the defaults filled in; [File.Gate] turns it into
// what [sluice.Open] needs. These fields are for the gate: store, on_store_failure, resources (of each: guard,
// use, split, arrival_slack, max_waiting, max_meters, ttl, light, breaker, backoff, reserve, limits), order, classes, shares,
// pacing, cascade, leases, slots, retry_windows, agents (class, user, waits_for), tools, retry.
//
// Budgets and routes are for the gate too, with what prices say. All others are read and checked here and kept in the File: listen,
// tls, tokens, and of a resource provider, upstream, client_deadline, inject and abort are for the proxy (package daemon), alerts
// for whoever posts them, key_env for the command line.
package config
