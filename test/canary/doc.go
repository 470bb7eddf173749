// Package canary plants secrets in every place where Sluice meets one, drives traffic that succeeds and fails, and
// searches everything that Sluice wrote: files, logs, output, responses, Redis, exported telemetry and the environment
// of commands.
package canary
