package provider

import "github.com/sluicehq/sluice"

// The methods below make Generic a Speaker. Generic knows nothing about calls.

// Address returns an empty string: every user has a different address.
func (Generic) Address() string { return "" }

// Ask reads a call.
func (Generic) Ask(c *Call) ParsedRequest { return genericVendor.Ask(c) }

// Key returns the API key of a call.
func (Generic) Key(header map[string][]string) string { return genericVendor.Key(header) }

// Usage returns nil: there is nothing to read.
func (Generic) Usage(*ParsedRequest, string) UsageReader { return nil }

// Spent returns nothing.
func (Generic) Spent(*Usage) []sluice.Amount { return nil }

// Refuse returns a refusal as application/problem+json.
func (Generic) Refuse(status int, message string) (contentType string, body []byte) {
	return genericVendor.Refuse(status, message)
}

// Rename reports false: there are no models.
func (Generic) Rename(*Call, string) (path string, body []byte, ok bool) { return "", nil, false }

// AskUsage returns the body as it is.
func (Generic) AskUsage(body []byte) []byte { return body }

// OnlyUsage reports false.
func (Generic) OnlyUsage([]byte) bool { return false }
