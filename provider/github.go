package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// GitHub is the dialect of GitHub's REST and GraphQL APIs. A primary limit belongs to a part of the API ("core",
// "search", ...) and states its reset. Secondary limits are about behaviour, apply to all parts, and state little.
type GitHub struct{}

// secondaryWait is how long GitHub asks to wait if it states nothing.
const secondaryWait = time.Minute

// Name returns "github".
func (GitHub) Name() string { return "github" }

// Observe reads a response.
func (GitHub) Observe(r *Response, now time.Time) Observation {
	rd := newReader(r, now)
	if rd.cached() && r.Status < 400 {
		return Observation{Ignored: rd.ignored}
	}
	var o Observation
	primary, stated := rd.githubLimit()
	if stated {
		o.Limits = []Limit{primary}
	}
	switch githubRefusal(r, &primary, rd) {
	case byPrimary:
		o.exhausted(&primary, rd)
	case bySecondary:
		o.secondary(rd)
	default:
		o.accepted(r, &primary, rd)
	}
	o.Ignored = rd.ignored
	return o
}

// githubLimit reads the primary limit that the request counted against.
func (rd *reader) githubLimit() (l Limit, stated bool) {
	f := newFamily("x-", "")
	for _, role := range [...]string{"limit", "remaining", "used", "reset"} {
		if name := "x-ratelimit-" + role; rd.first(name) != "" {
			rd.fill(&f, name, role)
		}
	}
	stated = f.settle() && f.limit.Size != 0
	l = f.limit
	l.Kind, l.Name = sluice.Fixed, rd.githubResource()
	l.Unit, l.Resource = l.Name, l.Name
	l.Window = githubWindow(l.Name)
	return l, stated
}

// githubResource returns the part of the API that the response is about. Old servers do not say; most of the API is
// core.
func (rd *reader) githubResource() string {
	name := rd.first("x-ratelimit-resource")
	switch {
	case name == "":
		return partCore
	case len(name) > maxName || !word(name):
		rd.ignored++
		return partCore
	}
	return name
}

// word reports whether s has only lower-case letters, digits and underscores.
func word(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// refused says which kind of limit refused a request.
type refused int

const (
	byNone refused = iota
	byPrimary
	bySecondary
)

// githubRefusal finds the kind of limit as GitHub advises: first by the message, then by Retry-After, then by what
// remains.
func githubRefusal(r *Response, primary *Limit, rd *reader) refused {
	switch r.Status {
	case 403, 429:
		return refusedREST(r, primary, rd)
	case 200:
		if primary.Resource == partGraphQL || primary.Size < 0 {
			return refusedGraphQL(r.Body, primary)
		}
	}
	return byNone
}

func refusedREST(r *Response, primary *Limit, rd *reader) refused {
	about := mentions(r.Body, "rate limit", "rate-limit")
	switch {
	case mentions(r.Body, "secondary rate", "secondary-rate", "abuse detection", "abuse-rate"):
		return bySecondary
	case primary.Remaining == 0 && (about || r.Status == 429 || len(r.Body) == 0):
		return byPrimary // a 403 with a body about something else was refused for that reason
	case r.Status == 429 || about || rd.has("retry-after"):
		return bySecondary
	}
	return byNone
}

// refusedGraphQL finds a refusal in a response with status 200. The remaining amount need not be 0, because a query
// can cost more than that. Then nothing says when to come back, as with a secondary limit.
func refusedGraphQL(body []byte, primary *Limit) refused {
	for _, e := range graphQLErrors(body, primary.Resource == partGraphQL) {
		switch {
		case mentions([]byte(e.Message), "secondary rate", "abuse detection"):
			return bySecondary
		case e.Type != "RATE_LIMITED" && e.Type != "RATE_LIMIT":
		case primary.Remaining > 0:
			return bySecondary
		default:
			return byPrimary
		}
	}
	return byNone
}

// graphQLError is an error in the body of a GraphQL response.
type graphQLError struct{ Type, Message string }

// graphQLErrors reads the errors of a response whose body may be incomplete. It searches only the outermost object,
// because the data in it are not GitHub's own statements. It accepts a message there only if the response is
// certainly GraphQL: a commit has a message too.
func graphQLErrors(body []byte, certain bool) []graphQLError {
	d := json.NewDecoder(bytes.NewReader(body[:min(len(body), MaxBody)]))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var found []graphQLError
		var message string
		var skip json.RawMessage
		switch {
		case key == "errors":
			if d.Decode(&found) != nil {
				return nil
			}
			return found
		case key == "message" && certain:
			if d.Decode(&message) != nil {
				return nil
			}
			return []graphQLError{{Message: message}}
		case d.Decode(&skip) != nil:
			return nil
		}
	}
	return nil
}

// exhausted sets the observation for a used-up primary limit: that part of the API waits for its reset.
func (o *Observation) exhausted(l *Limit, rd *reader) {
	o.Verdict, o.Scope = store.VerdictExhausted, sluice.PerModel|sluice.PerKey
	o.Cause = l.Name + ": primary rate limit"
	if l.ResetIn >= 0 {
		o.RetryAfter, o.Hinted = max(l.ResetIn, leastHint), true
		return
	}
	if o.RetryAfter, o.Hinted = rd.hint(); !o.Hinted {
		o.RetryAfter = secondaryWait
	}
}

// secondary sets the observation for a limit on behaviour: all requests with this key wait.
func (o *Observation) secondary(rd *reader) {
	o.Verdict, o.Scope = store.VerdictThrottled, sluice.PerKey
	o.Cause = "secondary rate limit"
	if o.RetryAfter, o.Hinted = rd.hint(); !o.Hinted || o.RetryAfter == 0 {
		o.RetryAfter, o.Hinted = secondaryWait, false // no hint, or a blank one, which GitHub is known to send
	}
}

// accepted sets the observation for a response that no limit refused.
func (o *Observation) accepted(r *Response, l *Limit, rd *reader) {
	o.Verdict = verdictOf(r, rd, nil)
	switch r.Status {
	case 402, 403: // a missing plan or permission, for this request alone
		o.Verdict = store.VerdictOK
	case 304: // unchanged content is free
		o.Usage = []sluice.Amount{{Unit: l.Unit, N: 0}}
	}
	o.explain(r.Status, rd)
}
