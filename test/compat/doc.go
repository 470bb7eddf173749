// Package compat runs the previous release next to this version: on one file store, on one Redis, as client and daemon of each other, and on each other's
// event logs. They work together, judged by a provider's own log, or the second one refuses with a message that names the reason. Run it with make compat.
package compat
