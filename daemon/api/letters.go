package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/deadletter"
)

// givenUp is a request that a client sent itself, with tickets, and gave up.
type givenUp struct {
	Resource string            `json:"resource"`
	Agent    string            `json:"agent"`
	Class    string            `json:"class"`
	User     string            `json:"user"`
	Tool     string            `json:"tool"`
	Model    string            `json:"model"`
	Method   string            `json:"method"`
	Path     string            `json:"path"`
	Headers  map[string]string `json:"headers"`
	// LeftOut names the headers and query parameters that the client did not send because they hold secrets. Query
	// parameters begin with ?.
	LeftOut names           `json:"left_out"`
	Body    deadletter.Text `json:"body"`
	// BodyLost reports that the body is missing, because it is too long or holds a secret.
	BodyLost bool   `json:"body_lost"`
	Attempts int    `json:"attempts"`
	Status   int    `json:"status"` // of the last response
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"`
}

// Bounds on what a client says about a dead letter.
const (
	maxLetterText  = 200 // bytes of a reason or a name
	maxLetterNames = 100 // headers
)

// letter keeps a request that a client gave up. Every caller that may take tickets may do so.
func (a *API) letter(c *call) error {
	var q givenUp
	if err := c.read(&q); err != nil {
		return err
	}
	class, err := c.as(&q.Agent, q.Class)
	if err != nil {
		return err
	}
	if q.User, err = c.speaksFor(q.Agent, q.User); err != nil {
		return err
	}
	if _, known := a.Limits[q.Resource]; !known {
		return &Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no resource %.80q", q.Resource), Hint: "GET /v1/status lists the resources"}
	}
	l := a.Letters(q.Resource)
	if l == nil {
		return &Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("resource %s keeps no dead letters", q.Resource), Hint: "set dead_letters: on, and upstream so that they can be sent again"}
	}
	r, err := q.request()
	if err != nil {
		return err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	l.Keep(r, []byte(q.Body), !q.BodyLost, []deadletter.Answer{{Time: now, Status: q.Status, Verdict: q.Verdict}}, deadletter.Entry{
		Resource: q.Resource, Agent: q.Agent, Class: class, User: q.User, Tool: q.Tool, Model: q.Model,
		Attempts: q.Attempts, First: now, Reason: q.Reason,
	})
	return nil
}

// request returns the HTTP request that was given up. Headers that the client left out get a placeholder value, so that
// the entry names them and sluice dlq knows that it needs a key.
func (q *givenUp) request() (*http.Request, error) {
	bad := func(format string, args ...any) error {
		return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...), Hint: "GET /v1/openapi.yaml has every field"}
	}
	if !strings.HasPrefix(q.Path, "/") {
		return nil, bad("path: %.80q does not begin with /", q.Path)
	}
	at, err := url.ParseRequestURI(q.Path)
	if err != nil {
		return nil, bad("path: it is not the path of a URL")
	}
	r, err := http.NewRequest(q.Method, "http://provider.invalid", nil)
	if err != nil || q.Method == "" {
		return nil, bad("method: %.80q is no method of HTTP", q.Method)
	}
	r.URL = at
	if q.Attempts < 0 || q.Attempts > 1_000_000 || q.Status != 0 && (q.Status < 100 || q.Status > 599) {
		return nil, bad("attempts, status: out of range")
	}
	if len(q.Headers)+len(q.LeftOut) > maxLetterNames {
		return nil, bad("headers, left_out: there are more than %d", maxLetterNames)
	}
	texts := []string{q.Reason, q.Verdict, q.Tool, q.Model}
	if slices.ContainsFunc(append(texts, q.LeftOut...), func(s string) bool { return len(s) > maxLetterText || deadletter.LooksSecret(s) }) {
		return nil, bad("reason, verdict, tool, model, left_out: a text has more than %d bytes, or looks like a key", maxLetterText)
	}
	for name, value := range q.Headers {
		r.Header.Set(name, value)
	}
	for _, name := range q.LeftOut {
		if param, is := strings.CutPrefix(name, "?"); is {
			r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+url.QueryEscape(param)+"="+leftOut, "&")
			continue
		}
		r.Header.Set(name, leftOut)
	}
	return r, nil
}

// leftOut is the placeholder for a secret. It looks like a secret, so that the entry leaves it out too.
const leftOut = "Bearer (left out)"
