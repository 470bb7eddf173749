package provider

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// GitHub is the dialect of GitHub's REST and GraphQL APIs. A primary limit belongs to a part
// of the API ("core", "search", ...) and says when it is back; secondary limits are about
// behaviour, are shared by all parts, and say little.
type GitHub struct{}

// secondaryWait is how long GitHub asks to wait where it states nothing.
const secondaryWait = time.Minute

// Name returns "github".
func (GitHub) Name() string { return "github" }

// Observe reads an answer.
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

// githubResource is the part of the API that the answer is about. Old servers do not say: most
// of the API is core.
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

// word reports a name of lower-case letters, digits and underscores.
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

// githubRefusal follows GitHub's own advice on how to tell them: what the message says, then
// Retry-After, then what remains.
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
		return byPrimary // a 403 whose body speaks of something else was refused for that
	case r.Status == 429 || about || rd.has("retry-after"):
		return bySecondary
	}
	return byNone
}

// refusedGraphQL finds a refusal in an answer with status 200. What remains need not be 0: a
// query can cost more than that. Then nothing says when to come back, as with a secondary limit.
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

// graphQLError is an error in the body of a GraphQL answer.
type graphQLError struct{ Type, Message string }

// graphQLErrors reads the errors of an answer whose body may be cut off. Only the outermost
// object is searched: what the data say is not GitHub's word. A message there is, but only
// if this is a GraphQL answer for certain: a commit has one too.
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

// exhausted is a primary limit with nothing left: that part of the API waits for its
// reset.
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

// secondary is a limit on behaviour: everything with this key waits.
func (o *Observation) secondary(rd *reader) {
	o.Verdict, o.Scope = store.VerdictThrottled, sluice.PerKey
	o.Cause = "secondary rate limit"
	if o.RetryAfter, o.Hinted = rd.hint(); !o.Hinted || o.RetryAfter == 0 {
		o.RetryAfter, o.Hinted = secondaryWait, false // none, or a blank one, which GitHub is known to send
	}
}

// accepted is an answer that no limit refused.
func (o *Observation) accepted(r *Response, l *Limit, rd *reader) {
	o.Verdict = verdictOf(r, rd, nil)
	switch r.Status {
	case 402, 403: // a plan or a right that is missing, for this request alone
		o.Verdict = store.VerdictOK
	case 304: // what has not changed is free
		o.Usage = []sluice.Amount{{Unit: l.Unit, N: 0}}
	}
	o.explain(r.Status, rd)
}
