package provider

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// liveOpenAI reads OpenAI's realtime API, and its responses API over a WebSocket. Compatible providers use the same
// messages.
type liveOpenAI struct {
	vendor   *vendor
	realtime bool
	fixed    bool // the address names the model
	liveState
}

// Asked returns the cost of a response that starts by itself.
func (l *liveOpenAI) Asked() ParsedRequest { return l.next(l.vendor) }

// Said reads a message from the client.
func (l *liveOpenAI) Said(message []byte) LiveCall {
	m := readLive(message)
	l.mu.Lock()
	defer l.mu.Unlock()
	c := LiveCall{ID: m.id, Stream: m.stream}
	if m.unread {
		c.Unread = true
		return c
	}
	switch m.kind {
	case "response.create":
		c.Starts = true
		if l.realtime {
			l.hear(m, len(message))
			c.Asked = l.asked(l.vendor, m)
		} else if m.warms { // only prepares the next response
			c.Asked = &ParsedRequest{Model: m.model, Stream: true, Free: true}
		}
		return c
	case "response.cancel":
		c.Cancels, c.Response = true, m.response
		return c
	case "session.update":
		l.session(m)
	}
	if l.realtime {
		l.hear(m, len(message))
	}
	return c
}

// session records what a message says about the session.
func (l *liveOpenAI) session(m *liveMessage) {
	if m.model != "" && (!l.fixed || l.model == "") {
		l.model = m.model
	}
	if m.most > 0 {
		l.most = m.most
	}
}

// Told reads a message from the provider.
func (l *liveOpenAI) Told(message []byte) LiveEvent {
	m := readLive(message)
	e := LiveEvent{Response: m.response, Stream: m.stream, Usage: m.usage}
	switch kind := m.kind; {
	case kind == "session.created" || kind == "session.updated":
		l.mu.Lock()
		l.session(m)
		l.mu.Unlock()
	case kind == "rate_limits.updated":
		e.Header = rateLimitsUpdated(message)
	case kind == "codex.rate_limits":
		e.Header = codexLimits(message)
	case kind == "error":
		e.Failed, e.For, e.Ends = true, m.errorFor, !l.realtime // the realtime API continues after an error
		e.Status, e.Header = l.failure(m, message), errorHeaders(message)
	case strings.HasPrefix(kind, "response."):
		e.About = true
		switch kind {
		case "response.created", "response.queued", "response.in_progress":
			e.Begins = true
		case "response.done", "response.completed", "response.incomplete", "response.failed", "response.cancelled":
			e.Ends = true
			if m.failed || kind == "response.failed" {
				e.Failed, e.Status = true, l.failure(m, message)
			}
		}
	}
	return e
}

// failure returns the HTTP status that an error stands for.
func (l *liveOpenAI) failure(m *liveMessage, message []byte) int {
	if m.status >= 400 && m.status < 600 {
		return int(m.status)
	}
	f := readFailure(message, false)
	return f.status()
}

// Closed returns 0: OpenAI sends an event with the reason first.
func (l *liveOpenAI) Closed(string) (int, []byte) { return 0, nil }

// Refuse returns an event that refuses a call.
func (l *liveOpenAI) Refuse(c *LiveCall, status int, message string, after time.Duration) []byte {
	kind := l.vendor.refusal.types[status]
	if kind == "" {
		kind = "server_error"
	}
	type text struct {
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Message string  `json:"message"`
		Param   *string `json:"param"`
		EventID *string `json:"event_id"`
	}
	event := struct {
		Type    string            `json:"type"`
		EventID string            `json:"event_id"`
		Stream  string            `json:"stream_id,omitempty"`
		Status  int               `json:"status"`
		Error   text              `json:"error"`
		Headers map[string]string `json:"headers,omitempty"`
	}{Type: "error", EventID: "event_sluice", Stream: c.Stream, Status: status, Error: text{Type: kind, Code: kind, Message: message}}
	if c.ID != "" {
		event.Error.EventID = &c.ID
	}
	if after > 0 {
		event.Headers = map[string]string{"retry-after": strconv.Itoa(int(math.Ceil(after.Seconds())))}
	}
	b, err := json.Marshal(event)
	if err != nil {
		return []byte(`{"type":"error"}`)
	}
	return b
}

// rateLimitsUpdated returns the limits that a message states, as response headers.
func rateLimitsUpdated(message []byte) map[string][]string {
	var event struct {
		Limits []struct {
			Name      string   `json:"name"`
			Limit     *int64   `json:"limit"`
			Remaining *int64   `json:"remaining"`
			Reset     *float64 `json:"reset_seconds"`
		} `json:"rate_limits"`
	}
	if json.Unmarshal(message, &event) != nil || len(event.Limits) > maxLimits {
		return nil
	}
	h := map[string][]string{}
	for _, l := range event.Limits {
		name := strings.ToLower(l.Name)
		if name != "requests" && name != "tokens" {
			continue
		}
		if l.Limit != nil {
			h["x-ratelimit-limit-"+name] = []string{strconv.FormatInt(*l.Limit, 10)}
		}
		if l.Remaining != nil {
			h["x-ratelimit-remaining-"+name] = []string{strconv.FormatInt(*l.Remaining, 10)}
		}
		if l.Reset != nil && *l.Reset >= 0 && *l.Reset < MaxReset.Seconds() {
			h["x-ratelimit-reset-"+name] = []string{time.Duration(*l.Reset * float64(time.Second)).Round(time.Millisecond).String()}
		}
	}
	return h
}

// codexLimits returns the windows of a ChatGPT plan that a message states, as response headers.
func codexLimits(message []byte) map[string][]string {
	type window struct {
		Used    *json.Number `json:"used_percent"`
		Minutes *json.Number `json:"window_minutes"`
		At      *json.Number `json:"reset_at"`
		After   *json.Number `json:"reset_after_seconds"`
	}
	var event struct {
		Limits struct {
			Primary   *window `json:"primary"`
			Secondary *window `json:"secondary"`
		} `json:"rate_limits"`
	}
	if json.Unmarshal(message, &event) != nil {
		return nil
	}
	h := map[string][]string{}
	set := func(name string, n *json.Number) {
		if n != nil {
			h[codexPrefix+name] = []string{n.String()}
		}
	}
	for name, w := range map[string]*window{"primary": event.Limits.Primary, "secondary": event.Limits.Secondary} {
		if w == nil || w.Used == nil {
			continue
		}
		set(name+"-used-percent", w.Used)
		set(name+"-window-minutes", w.Minutes)
		set(name+"-reset-at", w.At)
		set(name+"-reset-after-seconds", w.After)
	}
	return h
}

// errorHeaders returns the response headers that an error carries.
func errorHeaders(message []byte) map[string][]string {
	var event struct {
		Headers map[string]any `json:"headers"`
	}
	if json.Unmarshal(message, &event) != nil || len(event.Headers) > maxFields {
		return nil
	}
	h := map[string][]string{}
	for name, value := range event.Headers {
		switch v := value.(type) {
		case string:
			h[name] = []string{v}
		case float64:
			h[name] = []string{strconv.FormatFloat(v, 'f', -1, 64)}
		case bool:
			h[name] = []string{strconv.FormatBool(v)}
		}
	}
	return h
}
