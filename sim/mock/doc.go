// Package mock serves the provider models of package sim over HTTP. Its servers speak like Anthropic, OpenAI, Gemini,
// GitHub, or any API with standard headers. They enforce limits exactly, as a provider does: the time at which a
// request arrives decides. Simulations use the same rules.
//
// Responses are deterministic: the same request gets the same bytes, except for request ids and the state of the
// limits. The server counts usage by a simple rule in a ledger, which [Server.Stats] returns. Tests compare the
// accounting of a gate with it. The header X-Mock asks for faults. docs/mock.md describes all of it.
package mock
