// Package inspect has what a gate tells about itself: the [Status] of its resources and agents, the [Report] of what was sent,
// the [Diagnosis] of an audit, and the [Event] stream. All of it is plain data that encodes to the JSON of the HTTP API and of
// the command line. A figure that is not known is null there.
//
// Programs that only send requests need nothing of this package.
package inspect
