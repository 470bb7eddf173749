// Package config reads the configuration file: one YAML file, strictly. Every field has a
// default, and every mistake is told with file, line, column, field and what was expected.
// docs/configuration.md describes every field.
//
// [Load] and [Parse] return a [File] with the defaults filled in; [File.Gate] turns it into
// what [sluice.Open] needs. These fields are for the gate: store, on_store_failure, resources (of each: guard,
// use, arrival_slack, max_waiting, ttl, light, breaker, backoff, reserve, limits), order, classes, shares,
// pacing, cascade, leases, slots, retry_windows, agents (class, user, waits_for), tools, retry.
//
// All others are read and checked here, kept in the File, and have no effect on the gate:
// listen, budgets, routes, prices, alerts, tokens, an agent's budget, and of a resource
// provider, upstream, mode, client_deadline, split, key_env, inject, abort, and
// limits without a size. They are for a program with a proxy, providers and money; one that
// has none of these must not pretend that they act.
package config
