// Package mock serves the models of package sim over HTTP: servers that look to a client like
// Anthropic, OpenAI, GitHub, or any API with standard headers, and that enforce their limits
// exactly, as a provider does. The moment a request has arrived decides; the same rules judge the
// simulations.
//
// What is answered depends on the request alone, to the byte, apart from request ids and what the
// limits have left. How much a request uses is counted by a simple rule, and kept in a ledger that
// [Server.Stats] shows, so that the accounting of a gate can be compared with it. The header X-Mock
// asks for misbehaviour. docs/mock.md describes all of it.
package mock
