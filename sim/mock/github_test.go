package mock_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

func TestGitHubPaths(t *testing.T) {
	s := server(t, mock.Options{Provider: "github", Requests: sim.Rate{N: 5000, Window: time.Hour}})
	for _, c := range []struct {
		method, path, body string
		want               int
		part, has          string
	}{
		{"GET", "/", "", 200, "core", "current_user_url"},
		{"GET", "/user", "", 200, "core", `"login":"mock-user"`}, {"GET", "/api/v3/user", "", 200, "core", `"login":"mock-user"`},
		{"GET", "/repos/o/r", "", 200, "core", `"full_name":"o/r"`}, {"GET", "/repos/o/r/issues/3", "", 200, "core", `"number":3`},
		{"GET", "/repos/o/r/issues/300", "", 404, "core", "Not Found"}, {"GET", "/nowhere", "", 404, "core", `"status":"404"`},
		{"POST", "/repos/o/r/issues", `{"title":"t","body":"b"}`, 201, "core", `"title":"t"`},
		{"POST", "/repos/o/r/issues", `{}`, 422, "core", "Validation Failed"}, {"POST", "/repos/o/r/issues", `{`, 400, "", "Problems parsing JSON"},
		{"GET", "/search/issues?q=x", "", 200, "search", "total_count"}, {"GET", "/search/issues", "", 422, "search", "Validation Failed"},
		{"POST", "/graphql", `{"query":"{viewer{login} rateLimit{cost remaining}}"}`, 200, "graphql", `"rateLimit":{"cost":1,"limit":5000,"remaining":4999`},
		{"POST", "/api/graphql", `{"query":"{viewer{login}}"}`, 200, "graphql", `{"data":{"viewer":`}, {"POST", "/graphql", `{}`, 400, "", "Problems"},
		{"GET", "/graphql", "", 405, "", "Method Not Allowed"}, {"DELETE", "/user", "", 405, "", "Method Not Allowed"},
		{"GET", "/rate_limit", "", 200, "core", `"search":{"limit":30,"used":2,"remaining":28`},
	} {
		w := send(s, c.method, c.path, c.body)
		if w.Code != c.want || w.Header().Get("X-Ratelimit-Resource") != c.part || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s: %d of %q: %s", c.method, c.path, w.Code, w.Header().Get("X-Ratelimit-Resource"), w.Body)
		}
	}
}

func TestGitHubPages(t *testing.T) {
	s := server(t, mock.Options{Provider: "github"})
	seen, path, pages := map[float64]bool{}, "/repos/o/r/issues?state=open&per_page=40", 0
	for path != "" {
		w := send(s, "GET", path, "")
		for _, issue := range decodedList(t, w.Body.String()) {
			seen[at(issue, "number").(float64)] = true
		}
		path = ""
		for part := range strings.SplitSeq(w.Header().Get("Link"), ", ") {
			if target, ok := strings.CutSuffix(part, `>; rel="next"`); ok {
				path = strings.TrimPrefix(target, "<http://example.com")
				if !strings.Contains(path, "state=open") {
					t.Errorf("the next page forgets what was asked: %s", path)
				}
			}
		}
		pages++
	}
	if pages != 3 || len(seen) != 95 {
		t.Errorf("%d issues on %d pages", len(seen), pages)
	}
	w := send(s, "GET", "/repos/o/r/issues?page=2", "")
	for _, rel := range []string{"prev", "next", "last", "first"} {
		if !strings.Contains(w.Header().Get("Link"), `rel="`+rel+`"`) {
			t.Errorf("no %s in %s", rel, w.Header().Get("Link"))
		}
	}
	if w := send(s, "GET", "/repos/o/r/issues?page=99", ""); w.Body.String() != "[]" {
		t.Errorf("%s", w.Body)
	}
}

func decodedList(t *testing.T, body string) []any {
	t.Helper()
	return decoded(t, []byte(`{"l":`+body+`}`))["l"].([]any)
}

func TestGitHubPrimaryLimits(t *testing.T) {
	c := newClock()
	s := server(t, mock.Options{Provider: "github", Requests: sim.Rate{N: 2, Window: time.Hour}, Now: c.Now})
	c.advance(time.Minute)
	send(s, "GET", "/user", "")
	w := send(s, "GET", "/user", "")
	reset := fmt.Sprint(sim.Epoch.Std().Add(time.Hour).Unix())
	if w.Header().Get("X-Ratelimit-Remaining") != "0" || w.Header().Get("X-Ratelimit-Used") != "2" || w.Header().Get("X-Ratelimit-Reset") != reset {
		t.Errorf("%v", w.Header())
	}
	w = send(s, "GET", "/user", "")
	if w.Code != 429 || w.Header().Get("X-Ratelimit-Remaining") != "0" || w.Header().Get("Retry-After") != "3540" || !strings.Contains(w.Body.String(), `"message":"API rate limit exceeded`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for range 30 { // another part of the API has another limit
		if w := send(s, "GET", "/search/issues?q=x", ""); w.Code != 200 {
			t.Fatalf("%d", w.Code)
		}
	}
	if w := send(s, "GET", "/search/issues?q=x", ""); w.Code != 429 || w.Header().Get("X-Ratelimit-Resource") != "search" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if st := s.Stats(); st.WorstWindow != 2 || st.Throttled != 2 {
		t.Errorf("%+v", st)
	}
	for range 5000 {
		send(s, "POST", "/graphql", `{"query":"{viewer}"}`)
	}
	w = send(s, "POST", "/graphql", `{"query":"{viewer}"}`)
	if w.Code != 200 || at(decoded(t, w.Body.Bytes()), "errors", 0, "type") != "RATE_LIMITED" || w.Header().Get("X-Ratelimit-Remaining") != "0" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if s.Stats().Throttled != 3 {
		t.Errorf("%+v", s.Stats())
	}
	c.advance(59 * time.Minute)
	if w := send(s, "GET", "/user", ""); w.Code != 200 {
		t.Errorf("%d after the reset", w.Code)
	}
}

func TestGitHubConditionalRequestsAreFree(t *testing.T) {
	s := server(t, mock.Options{Provider: "github", Requests: perMinute(1), Now: newClock().Now})
	w := send(s, "GET", "/repos/o/r", "")
	tag := w.Header().Get("Etag")
	for range 3 {
		w := send(s, "GET", "/repos/o/r", "", "If-None-Match: "+tag)
		if tag == "" || w.Code != 304 || w.Body.Len() != 0 || w.Header().Get("X-Ratelimit-Used") != "1" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	if w := send(s, "GET", "/repos/o/other", "", "If-None-Match: "+tag); w.Code != 429 {
		t.Errorf("%d for what has changed", w.Code)
	}
	if st := s.Stats(); st.Free != 3 || st.Accepted != 1 {
		t.Errorf("%+v", st)
	}
}

func TestGitHubSecondaryLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, mock.Options{Provider: "github", Requests: perMinute(1000)})
		release := hanging(t, s, 100, "GET", "/user", "")
		w := send(s, "GET", "/user", "")
		if w.Code != 403 || w.Header().Get("Retry-After") != "60" || !strings.Contains(w.Body.String(), "You have exceeded a secondary rate limit") {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		release()
	})
	s := server(t, mock.Options{Provider: "github", Published: true, Now: newClock().Now})
	for i := range 81 {
		w := send(s, "POST", "/repos/o/r/issues", `{"title":"t"}`)
		if (w.Code == 201) != (i < 80) {
			t.Fatalf("issue %d: %d", i, w.Code)
		}
		if i == 80 && (w.Code != 403 || w.Header().Get("X-Ratelimit-Remaining") == "0") {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
}
