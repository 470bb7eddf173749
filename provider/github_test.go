package provider

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// githubHeader is what GitHub sends with every answer.
func githubHeader(resource, limit, remaining, used, reset string, more ...string) http.Header {
	return header(append([]string{
		"X-RateLimit-Resource: " + resource, "X-RateLimit-Limit: " + limit, "X-RateLimit-Remaining: " + remaining,
		"X-RateLimit-Used: " + used, "X-RateLimit-Reset: " + reset,
	}, more...)...)
}

// Bodies as GitHub sends them.
const (
	bodyPrimary    = `{"message":"API rate limit exceeded for user ID 1. If you reach out to GitHub Support for help, please include the request ID 9C31:8954C.","documentation_url":"https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api","status":"403"}`
	bodyAnonymous  = `{"message":"API rate limit exceeded for 192.0.2.1. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)","documentation_url":"https://developer.github.com/v3/#rate-limiting"}`
	bodySecondary  = `{"documentation_url":"https://docs.github.com/en/free-pro-team@latest/rest/overview/resources-in-the-rest-api#secondary-rate-limits","message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`
	bodyAbuse      = `{"message":"You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/resources-in-the-rest-api#abuse-rate-limits"}`
	bodyWhoa       = `<html><body><h1>Whoa there!</h1><p>You have triggered an abuse detection mechanism.<br>Please wait a few minutes before you try again;</p></body></html>`
	bodyNoRight    = `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest/issues/issues#create-an-issue","status":"403"}`
	bodyGraphQL    = `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for installation ID 9306189."}]}`
	bodyGraphQLNew = `{"errors":[{"type":"RATE_LIMIT","code":"graphql_rate_limit","message":"API rate limit already exceeded for user ID 1."}]}`
	bodyGraphQL2nd = `{"data":null,"errors":[{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}]}`
	bodyMissing    = `{"data":{"repository":null},"errors":[{"type":"NOT_FOUND","path":["repository"],"message":"Could not resolve to a Repository"}]}`
	bodyQuoting    = `{"data":{"issue":{"errors":[{"type":"RATE_LIMITED"}],"body":"You have exceeded a secondary rate limit \"errors\":[{\"type\":\"RATE_LIMITED\"}]"}}}`
)

func TestGitHubVerdicts(t *testing.T) {
	const (
		whole = sluice.PerKey
		part  = sluice.PerModel | sluice.PerKey
	)
	core := func(remaining string, more ...string) http.Header {
		return githubHeader("core", "5000", remaining, "1", "1794727800", more...)
	}
	graphql := func(remaining string, more ...string) http.Header {
		return githubHeader("graphql", "5000", remaining, "1", "1794727800", more...)
	}
	none := header()
	tests := []struct {
		name    string
		status  int
		header  http.Header
		body    string
		verdict store.Verdict
		scope   sluice.Scope
		wait    time.Duration
		hinted  bool
	}{
		{"success", 200, core("4999"), `[]`, store.VerdictOK, 0, 0, false},
		{"the last success", 200, core("0"), `[]`, store.VerdictOK, 0, 0, false},
		{"created", 201, core("10"), `{}`, store.VerdictOK, 0, 0, false},
		{"not signed in", 401, core("10"), `{"message":"Bad credentials"}`, store.VerdictOK, 0, 0, false},
		{"not found", 404, core("10"), `{"message":"Not Found"}`, store.VerdictOK, 0, 0, false},
		{"gone wrong", 422, core("10"), `{"message":"Validation Failed"}`, store.VerdictOK, 0, 0, false},
		{"no right", 403, core("10"), bodyNoRight, store.VerdictOK, 0, 0, false},
		{"no right, with the last request", 403, core("0"), bodyNoRight, store.VerdictOK, 0, 0, false},
		{"no right, body unread", 403, core("10"), "", store.VerdictOK, 0, 0, false},
		{"primary as 403", 403, core("0"), bodyPrimary, store.VerdictExhausted, part, 30 * time.Minute, true},
		{"primary as 429", 429, core("0"), bodyPrimary, store.VerdictExhausted, part, 30 * time.Minute, true},
		{"primary of nobody", 403, githubHeader("core", "60", "0", "60", "1794726001"), bodyAnonymous, store.VerdictExhausted, part, time.Second, true},
		{"primary, body unread", 403, core("0"), "", store.VerdictExhausted, part, 30 * time.Minute, true},
		{"primary that is back already", 403, githubHeader("search", "30", "0", "31", "1794725999"), bodyPrimary, store.VerdictExhausted, part, time.Second, true},
		{"primary without a reset", 403, header("X-RateLimit-Remaining: 0"), bodyPrimary, store.VerdictExhausted, part, time.Minute, false},
		{"secondary with a hint", 403, core("4700", "Retry-After: 60"), bodySecondary, store.VerdictThrottled, whole, time.Minute, true},
		{"secondary with a long hint", 429, core("4700", "Retry-After: 1800"), bodySecondary, store.VerdictThrottled, whole, 30 * time.Minute, true},
		{"secondary without a hint", 403, core("4700"), bodySecondary, store.VerdictThrottled, whole, time.Minute, false},
		{"secondary with a blank hint", 403, core("4700", "Retry-After:"), bodySecondary, store.VerdictThrottled, whole, time.Minute, false},
		{"secondary with nothing left", 403, core("0", "Retry-After: 9"), bodySecondary, store.VerdictThrottled, whole, 9 * time.Second, true},
		{"secondary without limits", 403, none, bodySecondary, store.VerdictThrottled, whole, time.Minute, false},
		{"secondary, body unread", 403, core("4700", "Retry-After: 60"), "", store.VerdictThrottled, whole, time.Minute, true},
		{"abuse", 403, core("4700"), bodyAbuse, store.VerdictThrottled, whole, time.Minute, false},
		{"abuse as a page", 403, none, bodyWhoa, store.VerdictThrottled, whole, time.Minute, false},
		{"429 and no more", 429, none, "", store.VerdictThrottled, whole, time.Minute, false},
		{"GraphQL", 200, graphql("4990"), `{"data":{}}`, store.VerdictOK, 0, 0, false},
		{"GraphQL with another error", 200, graphql("4990"), bodyMissing, store.VerdictOK, 0, 0, false},
		{"GraphQL with data that look like one", 200, graphql("4990"), bodyQuoting, store.VerdictOK, 0, 0, false},
		{"GraphQL primary", 200, graphql("0"), bodyGraphQL, store.VerdictExhausted, part, 30 * time.Minute, true},
		{"GraphQL primary of late", 200, graphql("0"), bodyGraphQLNew, store.VerdictExhausted, part, 30 * time.Minute, true},
		{"GraphQL primary with something left", 200, graphql("40"), bodyGraphQL, store.VerdictThrottled, whole, time.Minute, false},
		{"GraphQL primary without limits", 200, none, bodyGraphQL, store.VerdictExhausted, part, time.Minute, false},
		{"GraphQL secondary", 200, graphql("40", "Retry-After: 5"), bodyGraphQL2nd, store.VerdictThrottled, whole, 5 * time.Second, true},
		{"GraphQL secondary as a message", 200, graphql("40"), bodySecondary, store.VerdictThrottled, whole, time.Minute, false},
		{"GraphQL secondary as 403", 403, graphql("40"), bodySecondary, store.VerdictThrottled, whole, time.Minute, false},
		{"a body that is cut off", 200, graphql("40"), bodyGraphQL[:30], store.VerdictOK, 0, 0, false},
		{"a commit about limits", 200, core("40"), bodySecondary, store.VerdictOK, 0, 0, false},
		{"a commit about limits, of a server without", 200, none, bodySecondary, store.VerdictOK, 0, 0, false},
		{"broken", 500, core("40"), "", store.VerdictError, 0, 0, false},
		{"bad gateway", 502, none, "", store.VerdictError, 0, 0, false},
		{"overloaded", 503, none, "", store.VerdictOverloaded, 0, 0, false},
		{"no plan", 402, core("40"), "", store.VerdictOK, 0, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := GitHub{}.Observe(&Response{Status: tt.status, Header: tt.header, Body: []byte(tt.body)}, late)
			if o.Verdict != tt.verdict || o.Scope != tt.scope || o.RetryAfter != tt.wait || o.Hinted != tt.hinted {
				t.Errorf("%v, scope %v, wait %v, hinted %v; want %v, %v, %v, %v",
					o.Verdict, o.Scope, o.RetryAfter, o.Hinted, tt.verdict, tt.scope, tt.wait, tt.hinted)
			}
			if (o.Cause == "") != (tt.verdict == store.VerdictOK) {
				t.Errorf("cause %q of %v", o.Cause, o.Verdict)
			}
		})
	}
}

func TestGitHubStatesItsPrimaryLimit(t *testing.T) {
	for _, tt := range []struct {
		header  http.Header
		want    []Limit
		ignored int
	}{
		{githubHeader("core", "5000", "4999", "1", "1794729600"),
			[]Limit{{"core", "core", "core", sluice.Fixed, 5000, 4999, time.Hour, time.Hour, 0}}, 0},
		{githubHeader("search", "30", "18", "12", "1794726052"),
			[]Limit{{"search", "search", "search", sluice.Fixed, 30, 18, 52 * time.Second, time.Minute, 0}}, 0},
		{githubHeader("scim", "15000", "15000", "0", "1794729600"),
			[]Limit{{"scim", "scim", "scim", sluice.Fixed, 15000, 15000, time.Hour, 0, 0}}, 0},
		{header("X-RateLimit-Limit: 60", "X-RateLimit-Used: 4"),
			[]Limit{{"core", "core", "core", sluice.Fixed, 60, 56, store.NotStated, time.Hour, 0}}, 0},
		{githubHeader("Co re", "60", "x", "4", "1794729600"),
			[]Limit{{"core", "core", "core", sluice.Fixed, 60, 56, time.Hour, time.Hour, 0}}, 2},
		{header(), nil, 0},
		{githubHeader("core", "0", "0", "0", "1794729600"), nil, 0},
	} {
		o := GitHub{}.Observe(&Response{Status: 200, Header: tt.header}, late)
		if !reflect.DeepEqual(o.Limits, tt.want) || o.Ignored != tt.ignored {
			t.Errorf("%v\n%+v, %d ignored; want\n%+v, %d", tt.header, o.Limits, o.Ignored, tt.want, tt.ignored)
		}
	}
}

func TestGitHubNotModifiedIsFree(t *testing.T) {
	o := GitHub{}.Observe(&Response{Status: 304, Header: githubHeader("core", "60", "5", "55", "1794729600")}, late)
	if want := []sluice.Amount{{Unit: "core", N: 0}}; !reflect.DeepEqual(o.Usage, want) || o.Verdict != store.VerdictOK {
		t.Errorf("%+v", o)
	}
}

func TestGitHubCosts(t *testing.T) {
	for _, tt := range []struct{ method, path, part, want string }{
		{"GET", "/", "core", "core 1 points 1"},
		{"", "", "core", "core 1 points 1"},
		{"GET", "/repos/o/r/issues?per_page=100", "core", "core 1 points 1"},
		{"get", "repos/o/r", "core", "core 1 points 1"},
		{"HEAD", "/user", "core", "core 1 points 1"},
		{"POST", "/repos/o/r/issues", "core", "core 1 points 5 content 1"},
		{"PATCH", "/repos/o/r/pulls/1", "core", "core 1 points 5 content 1"},
		{"PUT", "/repos/o/r/contents/a", "core", "core 1 points 5 content 1"},
		{"DELETE", "/repos/o/r/issues/comments/1", "core", "core 1 points 5"},
		{"POST", "/repos/o/r/statuses/abc", "core", "core 1 points 5"},
		{"POST", "/repos/o/r/check-runs", "core", "core 1 points 5"},
		{"POST", "/app/installations/1/access_tokens", "core", "core 1 points 5"},
		{"GET", "/search/issues?q=x", "search", "search 1 points 1"},
		{"GET", "/search/code?q=x", "code_search", "code_search 1 points 1"},
		{"POST", "/graphql", "graphql", "graphql 1 graphql_points 1"},
		{"POST", "/api/graphql", "graphql", "graphql 1 graphql_points 1"},
		{"GET", "/api/v3/search/code", "code_search", "code_search 1 points 1"},
		{"GET", "/api/v3/repos/o/r", "core", "core 1 points 1"},
		{"GET", "/rate_limit", "core", "points 1"},
		{"POST", "/repos/o/r/code-scanning/sarifs", "code_scanning_upload", "code_scanning_upload 1 points 5 content 1"},
		{"GET", "/scim/v2/organizations/o/Users", "scim", "scim 1 points 1"},
		{"GET", "/repos/search/code", "core", "core 1 points 1"},
	} {
		var words []string
		for _, a := range (GitHub{}).Cost(tt.method, tt.path) {
			words = append(words, a.Unit, string(rune('0'+a.N)))
		}
		if got := strings.Join(words, " "); got != tt.want {
			t.Errorf("%s %s costs %s, want %s", tt.method, tt.path, got, tt.want)
		}
		if got := (GitHub{}).Part(tt.path); got != tt.part {
			t.Errorf("%s is part of %s, want %s", tt.path, got, tt.part)
		}
	}
}
