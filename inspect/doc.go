// Package inspect defines the data that a gate reports about itself: the [Status] of its resources and agents, the
// [Report] of sends, the [Diagnosis] of an audit, and the [Event] stream. The types encode to the JSON of the HTTP API
// and of the command line, where unknown figures are null.
//
// Programs that only send requests do not need this package.
package inspect
