// Package api serves the gate to programs in any language: tickets, agents, status and events as JSON over HTTP.
// openapi.yaml describes the paths, and the tests hold the handlers to it.
package api

import (
	"cmp"
	"context"
	_ "embed" // for the description
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/history"
	"github.com/sluicehq/sluice/internal/money"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
)

// Bounds on what a client may send.
const (
	maxBody = 1 << 20
	maxWait = 10 * time.Minute // longer than connections live; a client that needs more asks again
	// defaultWait is how long a request without wait_ms waits.
	defaultWait = 30 * time.Second
)

// Identity says who calls.
type Identity struct {
	// Token is the name of the caller's token, empty if it has none.
	Token string
	// Agent is the agent that the caller must be; empty means any agent.
	Agent string
	// User is the user that the caller must belong to; empty means any user.
	User string
	// Highest is the index of the highest class that the caller may use; 0 allows every class.
	Highest int
}

// Options configures an API.
type Options struct {
	Gate    *sluice.Gate
	Classes []string // highest first
	Dialect func(resource string) provider.Dialect
	Limits  map[string][]sluice.Limit
	// Backoff is how long all callers pause after a 429, by resource.
	Backoff map[string]sluice.Backoff
	// Identify returns who calls, or an error if the caller has no access.
	Identify func(r *http.Request) (Identity, error)
	// Keys returns the labels of the API keys that a resource is configured with, for limits per key. Nil means that no
	// keys are configured.
	Keys func(ctx context.Context, resource string) ([]string, error)
	// Report returns what was sent since a moment, with the figures of each minute or without.
	Report func(ctx context.Context, since time.Time, minutes bool) (any, error)
	// Rejected returns a list of the requests that the gate has lately refused: to one resource or, if it is empty, to
	// all; of one agent or of all. Nil means that none are known.
	Rejected func(resource, agent string) any
	// Past adds to a status which connections of commands went past the gate. Nil means that none are known.
	Past func(*inspect.Status)
	// EventLog returns the name of the event log that Report and Rejected read, followed by the labels of the events that
	// they count. It is in the header Sluice-Event-Log, so that a client with events of its own adds only what is not
	// counted yet. Nil means that no event log is read.
	EventLog func() string
	// Shared is the smallest budget that all agents spend together, in millionths of a dollar; 0 means that no such
	// budget exists.
	Shared int64
	// Users holds the users that callers below the highest class must not speak for.
	Users *proxy.Users
	// Events passes events to listeners.
	Events *Hub
	// History holds past events and counts. Nil means that no history is kept.
	History *history.Book
	// Config returns the configuration in effect, as YAML without secrets. Nil means that it is not shown.
	Config func() ([]byte, error)
	// Others opens the pools of the store that the configuration does not name, for reading: one pool, or all if
	// resource is empty. The caller has to close the gate. Nil means that these pools are not shown.
	Others func(ctx context.Context, resource string) (*sluice.Gate, error)
	// Served lists the resources that the proxy reaches.
	Served []Served
	// Away gates requests that their clients send by themselves. Nil means that there are none.
	Away Away
	// Letters returns the dead letters of a resource; nil if the resource keeps none.
	Letters func(resource string) *sluicehttp.Letters
	// After is the API that this one replaces; its record of ticket owners is taken over. Nil means none.
	After *API
	// Refused writes a problem as the response. Nil means that the problem writes itself.
	Refused func(w http.ResponseWriter, r *http.Request, p *Problem)
}

// API is the handler of everything under /v1.
type API struct {
	Options
	mux      *http.ServeMux
	owners   *owners
	callers  *callers
	refusals *refusals
	stated   *stated
	open     *open
	sending  *sending
	levels   levels
	others   others
}

// New returns the API of a gate.
func New(o Options) *API {
	a := &API{Options: o, mux: http.NewServeMux(), owners: &owners{}, callers: &callers{}, refusals: &refusals{}, stated: &stated{}, open: &open{}, sending: &sending{}}
	if o.After != nil {
		a.owners, a.callers, a.refusals, a.stated = o.After.owners, o.After.callers, o.After.refusals, o.After.stated
		a.open, a.sending, a.After = o.After.open, o.After.sending, nil // After need not stay in memory
	}
	if a.Refused == nil {
		a.Refused = func(w http.ResponseWriter, _ *http.Request, p *Problem) { p.Write(w) }
	}
	handle := func(pattern string, h func(*call) error) {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, h) })
	}
	handle("POST /v1/tickets", a.acquire)
	handle("POST /v1/tickets/{id}/answer", a.answer)
	handle("POST /v1/tickets/{id}/renew", a.renew)
	handle("POST /v1/tickets/{id}/close", a.close)
	handle("DELETE /v1/tickets/{id}", a.cancel)
	handle("POST /v1/exchanges", a.begin)
	handle("POST /v1/exchanges/{id}/answer", a.answerExchange)
	handle("POST /v1/exchanges/{id}/body", a.bodyOfExchange)
	handle("DELETE /v1/exchanges/{id}", a.cancelExchange)
	handle("PUT /v1/agents/{name}", a.heartbeat)
	handle("DELETE /v1/agents/{name}", a.leave)
	handle("POST /v1/resources/{name}/observe", a.observe)
	handle("POST /v1/resources/{name}/pause", a.pause)
	handle("POST /v1/resources/{name}/resume", a.resume)
	handle("POST /v1/route", a.route)
	handle("POST /v1/dead-letters", a.letter)
	handle("GET /v1/status", a.status)
	handle("GET /v1/pool/{name}", a.pool)
	handle("GET /v1/why", a.why)
	handle("GET /v1/report", a.report)
	handle("GET /v1/history", a.history)
	handle("GET /v1/recent", a.recent)
	handle("GET /v1/config", a.config)
	handle("GET /v1/me", a.me)
	handle("GET /v1/events", a.events)
	handle("GET /v1/openapi.yaml", describe)
	handle("/v1/", func(c *call) error {
		if others := Methods(a.mux, c.r); others != "" {
			return NotAllowed(c.w, c.r, others)
		}
		return &Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no %s %.200s", c.r.Method, c.r.URL.Path), Hint: "GET /v1/openapi.yaml describes the API"}
	})
	return a
}

// ServeHTTP serves one request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if clean := path.Clean(r.URL.Path); clean != strings.TrimSuffix(r.URL.Path, "/") { // the mux would answer with a redirect
		a.Refused(w, r, &Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no %.200s", r.URL.Path), Hint: "names such as . and .. cannot be part of a path"})
		return
	}
	a.mux.ServeHTTP(w, r)
}

// Methods returns the methods that a mux takes at the path of a request, for the header Allow. It is empty if the mux has
// only patterns for any method there.
func Methods(mux *http.ServeMux, r *http.Request) string {
	var list []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		q := *r
		q.Method = method
		if _, pattern := mux.Handler(&q); strings.Contains(pattern, " ") {
			list = append(list, method)
		}
	}
	return strings.Join(list, ", ")
}

// NotAllowed returns the problem of a method that a path does not take, and sets the header Allow.
func NotAllowed(w http.ResponseWriter, r *http.Request, allow string) *Problem {
	w.Header().Set("Allow", allow)
	return &Problem{Status: http.StatusMethodNotAllowed, Detail: fmt.Sprintf("%.200s does not take %.20s", r.URL.Path, r.Method), Hint: "it takes " + allow}
}

//go:embed openapi.yaml
var description []byte

// describe sends the description of the API.
func describe(c *call) error {
	c.done = true
	c.w.Header().Set("Content-Type", "application/yaml")
	return ignore(send(c.w, c.r, description))
}

// call is one request to the API.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	who  Identity
	api  *API
	done bool // it has a response
}

func (a *API) serve(w http.ResponseWriter, r *http.Request, h func(*call) error) {
	who, err := a.Identify(r)
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxBodyOf(r))
		c := &call{w: w, r: r, who: who, api: a}
		if err = h(c); err == nil {
			if !c.done {
				w.WriteHeader(http.StatusNoContent)
			}
			return
		}
	}
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the client is gone, or got half a response: it must not look like a whole one
	}
	a.Refused(w, r, ProblemOf(err))
}

// reply sends JSON.
func (c *call) reply(v any) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Cache-Control", "no-store")
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.done = true
	return ignore(send(c.w, c.r, append(body, '\n')))
}

// result sends JSON, unless there is an error.
func (c *call) result(v any, err error) error {
	if err != nil {
		return err
	}
	return c.reply(v)
}

// ignore drops the error of a response that the client is no longer there to read.
func ignore(error) error { return nil }

// read reads the body into v, strictly. An empty body counts as an empty object, the body null does not.
func (c *call) read(v any) error {
	if kind := c.r.Header.Get("Content-Type"); kind != "" {
		// curl -d and Python's urllib send the type of a form by default. Accepting it lets no other site in: a browser escapes
		// the braces of a form, and adds an Origin to every other request that it sends for a page. Foreign origins get 403.
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" && media != "application/x-www-form-urlencoded" {
			return &Problem{Status: http.StatusUnsupportedMediaType, Detail: fmt.Sprintf("the body is %.80q", kind), Hint: "send application/json"}
		}
	}
	d := json.NewDecoder(c.r.Body)
	d.DisallowUnknownFields()
	into := v
	err := d.Decode(&into) // into what v points to; null makes it nil
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && into == nil {
		err = &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeOf(v).Elem()}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &Problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", maxBodyOf(c.r)), Hint: "send less; of a response's body the beginning is enough"}
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &Problem{Status: http.StatusBadRequest, Detail: cmp.Or(strings.TrimPrefix(kind.Field, "said."), "the body") + ": " + wrongType(kind), Hint: "GET /v1/openapi.yaml has every field"}
	}
	if err == nil && d.More() {
		err = errors.New("there is more than one value")
	}
	if err != nil {
		return &Problem{Status: http.StatusBadRequest, Detail: "the body: " + strings.TrimPrefix(err.Error(), "json: "), Hint: "GET /v1/openapi.yaml has every field"}
	}
	return nil
}

// names is a list of names in a body. It cannot be null.
type names []string

func (n *names) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[names]()}
	}
	return json.Unmarshal(text, (*[]string)(n))
}

// wrongType says what a value of a body has to be instead of what it is.
func wrongType(e *json.UnmarshalTypeError) string {
	want := "an object"
	switch e.Type.Kind() {
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		want = "a number"
		if n, ok := strings.CutPrefix(e.Value, "number "); ok { // a fraction, or out of range
			return n + " is not a whole number that is small enough"
		}
	}
	is := e.Value
	switch is {
	case "array":
		is = "a list"
	case "bool":
		is = "true or false"
	case "object":
		is = "an object"
	case "null":
	default:
		is = "a " + is
	}
	return "it has to be " + want + ", not " + is
}

// unnamed is the agent of callers that state none. Its class is that of agents which the configuration does not name.
const unnamed = "unnamed"

// as checks agent and class against the caller's identity and fills in a missing agent. It returns the class to ask in.
func (c *call) as(agent *string, class string) (string, error) {
	if c.who.Agent != "" {
		if *agent != "" && *agent != c.who.Agent {
			return "", &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("the token is agent %s's, not %.80q's", c.who.Agent, *agent), Hint: "leave the agent out, or use its own token"}
		}
		*agent = c.who.Agent
	}
	if *agent == "" {
		*agent = unnamed
	}
	if c.who.Highest == 0 {
		return class, nil
	}
	if class == "" { // it may be lower than what the token allows
		class = c.api.Gate.Class(*agent)
		if slices.Index(c.api.Classes, class) < c.who.Highest {
			class = c.api.Classes[c.who.Highest]
		}
		return class, nil
	}
	for i, name := range c.api.Classes {
		if name == class && i < c.who.Highest {
			return "", &Problem{Status: http.StatusForbidden, Detail: fmt.Sprintf("the token allows class %s at most, not %s", c.api.Classes[c.who.Highest], class), Hint: "ask in a lower class, or use another token"}
		}
	}
	return class, nil
}

// millis reads a time in milliseconds between 0 and most; nil means usual.
func millis(field string, ms *int64, usual, most time.Duration) (time.Duration, error) {
	if ms == nil {
		return usual, nil
	}
	d := time.Duration(*ms) * time.Millisecond
	if *ms < 0 || *ms > int64(most/time.Millisecond) {
		return 0, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s: %d is out of range", field, *ms), Hint: fmt.Sprintf("give 0 to %d milliseconds", most.Milliseconds())}
	}
	return d, nil
}

// units converts a map into amounts. Units are whole numbers, except for [sluice.USD]: bodies state dollars, and the
// gate counts millionths. A unit that is null is not stated.
func units(field string, m map[string]json.RawMessage) ([]sluice.Amount, error) {
	bad := func(unit, why, hint string) error {
		return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s.%.80s: %s", field, unit, why), Hint: hint}
	}
	if len(m) > store.MaxLimits*2 {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%d units are too many", len(m)), Hint: fmt.Sprintf("name at most %d, those that limits count", store.MaxLimits*2)}
	}
	var list []sluice.Amount
	for unit, text := range m {
		if string(text) == "null" {
			continue
		}
		if unit == sluice.USD {
			n, err := money.Micros(string(text))
			if err != nil {
				return nil, bad(unit, err.Error(), "usd is in dollars, such as 0.02")
			}
			list = append(list, sluice.Amount{Unit: unit, N: n})
			continue
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		switch {
		case err != nil:
			return nil, bad(unit, fmt.Sprintf("%.80s is not a whole number that is small enough", text), "use a whole number, 0 or more")
		case n < 0:
			return nil, bad(unit, "it is negative", "use 0 or more")
		}
		list = append(list, sluice.Amount{Unit: unit, N: n})
	}
	return list, nil
}

// truth reads a parameter that is true or false; without a text it is false.
func truth(text, field string) (bool, error) {
	if text == "" {
		return false, nil
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("%s: %.80q is neither true nor false", field, text), Hint: "leave it out, or use true"}
	}
	return yes, nil
}

// since reads a moment: a time in RFC 3339, or how long ago, such as 24h.
func since(text string) (time.Time, error) {
	if text == "" {
		return time.Now().Add(-24 * time.Hour), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	days, isDays := strings.CutSuffix(text, "d")
	if n, err := strconv.Atoi(days); isDays && err == nil && n > 0 && n < 10_000 {
		return time.Now().Add(-time.Duration(n) * 24 * time.Hour), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("since: %.80q is no time", text), Hint: "24h, 7d, or 2026-11-15T00:00:00Z"}
}
