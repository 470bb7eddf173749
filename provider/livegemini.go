package provider

import (
	"strings"
	"time"
)

// liveGemini reads Gemini's Live API.
type liveGemini struct {
	vendor *vendor
	liveState
}

// Asked returns the cost of a response that starts by itself.
func (l *liveGemini) Asked() ParsedRequest { return l.next(l.vendor) }

// Said reads a message from the client.
func (l *liveGemini) Said(message []byte) LiveCall {
	m := readLive(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.unread {
		return LiveCall{Unread: true}
	}
	if m.top == "setup" {
		if m.model != "" {
			l.model = m.model
		}
		l.most = m.most
	}
	// A message should have one of these, but what a server does with several is its own affair.
	c := LiveCall{Starts: m.complete || m.text || m.over}
	if !c.Starts && m.tool {
		c.Starts, c.Follows = true, true
	}
	l.hear(m, len(message))
	if c.Starts {
		c.Asked = l.asked(l.vendor, nil)
	}
	return c
}

// Told reads a message from the provider.
func (l *liveGemini) Told(message []byte) LiveEvent {
	m := readLive(message)
	e := LiveEvent{Usage: m.usage, Late: true}
	switch m.top {
	case "serverContent", "server_content", "toolCall", "tool_call":
		e.About, e.Ends = true, m.complete
		e.Content = m.content || strings.HasPrefix(m.top, "tool")
	case "usageMetadata", "usage_metadata":
		e.About = true
	}
	return e
}

// Closed reads why the connection was closed: Gemini puts the error there.
func (l *liveGemini) Closed(reason string) (status int, body []byte) {
	text := strings.ToLower(reason)
	for _, word := range [...]string{"quota", "resource_exhausted", "resource exhausted", "rate limit", "credits are depleted"} {
		if strings.Contains(text, word) {
			_, body = l.vendor.Refuse(429, reason)
			return 429, body
		}
	}
	for _, word := range [...]string{"unavailable", "overloaded"} {
		if strings.Contains(text, word) {
			_, body = l.vendor.Refuse(503, reason)
			return 503, body
		}
	}
	return 0, nil
}

// Refuse returns nil: Gemini closes the connection.
func (l *liveGemini) Refuse(*LiveCall, int, string, time.Duration) []byte { return nil }
