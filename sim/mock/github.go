package mock

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/sim"
)

// github serves the REST and GraphQL API.
type github struct{}

// resource is the content of a path.
type resource struct {
	unit   string // primary limit that counts it
	status int
	body   any
	create bool
	link   string
}

func (p github) serve(x *exchange) {
	words := strings.Split(githubPath(x.r.URL.Path), "/")
	switch {
	case words[0] == "graphql" && len(words) == 1:
		if x.allow(http.MethodPost) {
			p.graphql(x)
		}
		return
	case words[0] == "rate_limit" && len(words) == 1:
		if x.allow(http.MethodGet, http.MethodHead) {
			p.rateLimit(x)
		}
		return
	case len(words) == 4 && words[0] == "repos" && words[3] == "issues" && x.r.Method == http.MethodPost:
		p.createIssue(x, words[1], words[2])
		return
	}
	if !x.allow(http.MethodGet, http.MethodHead) {
		return
	}
	if r := p.find(x, words); r != nil {
		p.give(x, r)
		return
	}
	p.give(x, &resource{unit: sim.Requests, status: http.StatusNotFound, body: p.problem(nil, http.StatusNotFound, "Not Found")})
}

// githubPath returns a path without the prefix of an Enterprise server.
func githubPath(path string) string {
	path = strings.Trim(path, "/")
	if rest, ok := strings.CutPrefix(path, "api/"); ok {
		return strings.TrimPrefix(rest, "v3/")
	}
	return path
}

// find returns the resource at a path, or nil if it does not exist.
func (p github) find(x *exchange, words []string) *resource {
	ok := func(body any) *resource { return &resource{unit: sim.Requests, status: http.StatusOK, body: body} }
	switch {
	case len(words) == 1 && words[0] == "":
		return ok(obj{{"current_user_url", base(x) + "/user"}, {"rate_limit_url", base(x) + "/rate_limit"}})
	case len(words) == 1 && words[0] == "user":
		return ok(githubUser())
	case len(words) == 2 && words[0] == "search" && words[1] == "issues":
		return p.search(x)
	case len(words) < 3 || words[0] != "repos":
		return nil
	case len(words) == 3:
		return ok(githubRepo(words[1], words[2]))
	case len(words) == 4 && words[3] == "issues":
		return p.issues(x, words[1], words[2])
	case len(words) == 5 && words[3] == "issues":
		if n, err := strconv.Atoi(words[4]); err == nil && n > 0 && n <= issuesOfRepo {
			return ok(githubIssue(words[1], words[2], n))
		}
	}
	return nil
}

// give sends a resource. If the client already has it, the request takes nothing from the limits.
func (p github) give(x *exchange, r *resource) {
	tag := seedOf(encode(r.body)).id(`W/"`) + `"`
	reads := x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
	h := x.w.Header()
	if reads && r.status == http.StatusOK && x.r.Header.Get("If-None-Match") == tag && x.fault == (fault{body: -1, slow: -1}) {
		x.free()
		a := ask{key: x.s.keys.of(x.r.Header), takes: []amount{{r.unit, 1}}}
		at, states := x.s.book.look(&a)
		p.headers(h, at, states)
		h.Set("Etag", tag)
		if x.begin() {
			x.w.WriteHeader(http.StatusNotModified)
		}
		return
	}
	a := ask{takes: []amount{{r.unit, 1}, {sim.Points, 1}}}
	if !reads {
		a.takes[1].n = 5
	}
	if r.create {
		a.takes = append(a.takes, amount{sim.Content, 1})
	}
	if !x.admit(a, "", Usage{}) || !x.begin() {
		return
	}
	if reads && r.status == http.StatusOK {
		h.Set("Etag", tag)
		h.Set("Cache-Control", "private, max-age=60, s-maxage=60")
	}
	if r.link != "" {
		h.Set("Link", r.link)
	}
	x.reply(r.status, r.body)
}

// base returns the URL under which the client reached the server.
func base(x *exchange) string {
	scheme := "http://"
	if x.r.TLS != nil {
		scheme = "https://"
	}
	return scheme + x.r.Host
}

func githubUser() obj {
	return obj{{"login", "mock-user"}, {"id", 1}, {"node_id", "U_mock1"}, {"type", "User"}, {"site_admin", false}, {"name", "Mock User"}, {"public_repos", 3}}
}

func githubRepo(owner, name string) obj {
	s := seedOf([]byte(owner), []byte(name))
	return obj{
		{"id", int64(s.number(0, 1e9))}, {"node_id", s.id("R_")}, {"name", name}, {"full_name", owner + "/" + name}, {"private", false},
		{"owner", obj{{"login", owner}, {"type", "Organization"}}}, {"fork", false}, {"default_branch", "main"}, {"open_issues_count", issuesOfRepo},
	}
}

// issuesOfRepo is the number of issues in every repository.
const issuesOfRepo = 95

func githubIssue(owner, repo string, number int) obj {
	s := seedOf([]byte(owner), []byte(repo), []byte(strconv.Itoa(number)))
	return obj{
		{"id", int64(s.number(0, 1e9))}, {"node_id", s.id("I_")}, {"number", number}, {"title", write(s, 6).text()}, {"state", "open"},
		{"user", obj{{"login", "mock-user"}, {"id", 1}}}, {"labels", []any{}}, {"comments", 0}, {"body", write(s, 0).text()},
		{"repository_url", "/repos/" + owner + "/" + repo}, {"created_at", "2026-01-01T00:00:00Z"}, {"updated_at", "2026-01-01T00:00:00Z"},
	}
}

// page returns the requested part of a list, and the Link header to the other parts.
func page(x *exchange, total int) (first, last int, link string) {
	q := x.r.URL.Query()
	number := func(name string, least, most, absent int) int {
		n, err := strconv.Atoi(q.Get(name))
		if err != nil {
			return absent
		}
		return min(max(n, least), most)
	}
	size, at := number("per_page", 1, 100, 30), number("page", 1, 1_000_000, 1)
	pages := (total + size - 1) / size
	to := func(n int, rel string) string {
		u := url.URL{Path: x.r.URL.Path}
		q.Set("page", strconv.Itoa(n))
		u.RawQuery = q.Encode()
		return fmt.Sprintf(`<%s%s>; rel="%s"`, base(x), u.String(), rel)
	}
	var links []string
	if at > 1 {
		links = append(links, to(min(at-1, pages), "prev"))
	}
	if at < pages {
		links = append(links, to(at+1, "next"), to(pages, "last"))
	}
	if at > 1 {
		links = append(links, to(1, "first"))
	}
	return min((at-1)*size, total), min(at*size, total), strings.Join(links, ", ")
}

func (p github) issues(x *exchange, owner, repo string) *resource {
	first, last, link := page(x, issuesOfRepo)
	list := []any{}
	for n := first; n < last; n++ { // newest first
		list = append(list, githubIssue(owner, repo, issuesOfRepo-n))
	}
	return &resource{unit: sim.Requests, status: http.StatusOK, body: list, link: link}
}

func (p github) search(x *exchange) *resource {
	q := x.r.URL.Query().Get("q")
	if q == "" {
		return &resource{unit: unitSearch, status: http.StatusUnprocessableEntity, body: p.problem(nil, http.StatusUnprocessableEntity, "Validation Failed")}
	}
	total := int(seedOf([]byte(q)).number(0, 60))
	first, last, link := page(x, total)
	list := []any{}
	for n := first; n < last; n++ {
		list = append(list, append(githubIssue("mock", "search", n+1), field{"score", 1}))
	}
	return &resource{unit: unitSearch, status: http.StatusOK, link: link, body: obj{
		{"total_count", total}, {"incomplete_results", false}, {"items", list},
	}}
}

// createIssue answers as if an issue had been created. It is not stored.
func (p github) createIssue(x *exchange, owner, repo string) {
	body, ok := x.read()
	if !ok {
		return
	}
	var issue struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
	if json.Unmarshal(body, &issue) != nil {
		x.fail(http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	if issue.Title == "" {
		p.give(x, &resource{unit: sim.Requests, status: http.StatusUnprocessableEntity, body: p.problem(nil, http.StatusUnprocessableEntity, "Validation Failed")})
		return
	}
	made := githubIssue(owner, repo, issuesOfRepo+1+int(seedOf(compact(body)).number(0, 1e6)))
	for i := range made {
		switch made[i].name {
		case "title":
			made[i].value = issue.Title
		case "body":
			made[i].value = issue.Body
		}
	}
	p.give(x, &resource{unit: sim.Requests, status: http.StatusCreated, body: made, create: true})
}
