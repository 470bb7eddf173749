package mock

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

func (github) hello(h http.Header) {
	h.Set("X-Github-Request-Id", requestID(""))
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Github-Media-Type", "github.v3; format=json")
}

// part returns GitHub's name for the primary limit with this unit, or "" if the unit has no primary limit.
func part(unit string) string {
	switch unit {
	case sim.Requests:
		return "core"
	case unitSearch, unitGraph:
		return unit
	}
	return ""
}

// headers states the primary limit that the request counts against.
func (github) headers(h http.Header, _ store.Time, states []stated) {
	for _, s := range states {
		name := part(s.limit.Unit)
		if name == "" {
			continue
		}
		h.Set("X-Ratelimit-Limit", strconv.FormatInt(s.Size, 10))
		h.Set("X-Ratelimit-Remaining", strconv.FormatInt(s.Remaining, 10))
		h.Set("X-Ratelimit-Used", strconv.FormatInt(s.Size-s.Remaining, 10))
		h.Set("X-Ratelimit-Reset", strconv.FormatInt(upSeconds(s.Reset), 10))
		h.Set("X-Ratelimit-Resource", name)
		return
	}
}

const (
	primaryMessage   = "API rate limit exceeded for user ID 1. If you reach out to GitHub Support for help, please include the request ID."
	secondaryMessage = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to GitHub Support for help, please include the request ID."
)

// secondaryWait is the wait that GitHub asks for if it does not know how long the limit lasts.
const secondaryWait = time.Minute

// refuse answers primary limits with 429 and no remaining quota, and secondary limits with 403. GraphQL gets its errors
// with status 200.
func (p github) refuse(h http.Header, d *decision) (int, any) {
	if part(d.limit.Unit) != "" {
		d.retryAfter(h)
		if d.limit.Unit == unitGraph {
			return http.StatusOK, obj{{"errors", []any{obj{{"type", "RATE_LIMITED"}, {"message", primaryMessage}}}}}
		}
		return http.StatusTooManyRequests, p.problem(h, http.StatusTooManyRequests, primaryMessage)
	}
	h.Set("Retry-After", strconv.FormatInt(wholeSeconds(cmp.Or(d.back, secondaryWait)), 10))
	return http.StatusForbidden, p.problem(h, http.StatusForbidden, secondaryMessage)
}

func (github) problem(_ http.Header, status int, message string) any {
	if status == http.StatusTooManyRequests && message != primaryMessage {
		message = secondaryMessage
	}
	about := "https://docs.github.com/rest"
	if message == primaryMessage || message == secondaryMessage {
		about += "/using-the-rest-api/rate-limits-for-the-rest-api"
	}
	return obj{{"message", message}, {"documentation_url", about}, {"status", strconv.Itoa(status)}}
}

func (github) broken(*exchange, bool) (string, any) {
	return "error", obj{{"data", nil}, {"errors", []any{obj{{"type", "INTERNAL"}, {"message", "Something went wrong while executing your query."}}}}}
}

// rateLimit reports the remaining quota. The request counts against no limit.
func (p github) rateLimit(x *exchange) {
	x.free()
	a := ask{key: x.s.keys.of(x.r.Header), takes: []amount{{sim.Requests, 1}, {unitSearch, 1}, {unitGraph, 1}}}
	at, states := x.s.book.look(&a)
	p.headers(x.w.Header(), at, states)
	all := obj{}
	var core any = obj{}
	for _, s := range states {
		one := obj{{"limit", s.Size}, {"used", s.Size - s.Remaining}, {"remaining", s.Remaining}, {"reset", upSeconds(s.Reset)}}
		switch name := part(s.limit.Unit); name {
		case "":
			continue
		case "core":
			core = one
			fallthrough
		default:
			all = append(all, field{name, one})
		}
	}
	x.reply(http.StatusOK, obj{{"resources", all}, {"rate", core}})
}

// graphql answers a query with each known object whose name occurs in the query.
func (p github) graphql(x *exchange) {
	body, ok := x.read()
	if !ok {
		return
	}
	var q struct {
		Query string `json:"query"`
	}
	if json.Unmarshal(body, &q) != nil || q.Query == "" {
		x.fail(http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	const cost = 1
	if !x.admit(ask{takes: []amount{{unitGraph, cost}}}, "", Usage{}) || !x.begin() {
		return
	}
	data := obj{}
	for _, known := range []field{
		{"viewer", githubUser()}, {"repository", githubRepo("mock", "graphql")}, {"rateLimit", p.graphLimit(x, cost)},
	} {
		if strings.Contains(q.Query, known.name) {
			data = append(data, known)
		}
	}
	x.reply(http.StatusOK, obj{{"data", data}})
}

// graphLimit returns the rateLimit object of a query.
func (github) graphLimit(x *exchange, cost int64) obj {
	_, states := x.s.book.look(&x.ask)
	for _, s := range states {
		if s.limit.Unit == unitGraph {
			return obj{
				{"cost", cost}, {"limit", s.Size}, {"remaining", s.Remaining}, {"used", s.Size - s.Remaining},
				{"resetAt", store.Time(upSeconds(s.Reset) * 1_000_000).Std().Format(time.RFC3339)},
			}
		}
	}
	return obj{}
}
