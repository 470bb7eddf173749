// Package mock serves the models of package sim over HTTP. Its servers look like Anthropic, OpenAI, Gemini, GitHub,
// or any API with standard headers. They enforce limits exactly, as a provider does: the time of a request's arrival
// decides. The same rules are used in simulations.
//
// A response depends only on the request, to the byte, except for request ids and the state of the limits. Usage is
// counted by a simple rule, and kept in a ledger that [Server.Stats] returns. So the accounting of a gate can be
// compared with it. The header X-Mock asks for faults. docs/mock.md describes all of it.
package mock
