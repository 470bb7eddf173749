package provider

import (
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// Parts of the API that have their own primary limits and are recognized by path.
const (
	partCore       = "core"
	partSearch     = "search"
	partCodeSearch = "code_search"
	partGraphQL    = "graphql"
)

// Units of the preset that are not named after a part.
const (
	unitPoints        = "points"
	unitGraphQLPoints = "graphql_points"
	unitContent       = "content"
)

// githubWindow returns the window of a primary limit, or 0 if it is unknown.
func githubWindow(part string) time.Duration {
	switch part {
	case partCore, partGraphQL:
		return time.Hour
	case partSearch, partCodeSearch:
		return time.Minute
	}
	return 0
}

// rareParts are rarely used parts of the API, by the beginning or end of their paths. The preset does not have their
// limits, but a used-up one must not hold core.
var rareParts = [...]struct{ begins, ends, part string }{
	{begins: "scim", part: "scim"},
	{begins: "app-manifests", part: "integration_manifest"},
	{ends: "code-scanning/sarifs", part: "code_scanning_upload"},
	{ends: "dependency-graph/snapshots", part: "dependency_snapshots"},
	{ends: "dependency-graph/sbom", part: "dependency_sbom"},
	{ends: "actions/runners/registration-token", part: "actions_runner_registration"},
}

// Part returns the part of the API that a path belongs to.
func (GitHub) Part(path string) string {
	path = plainPath(path)
	first, rest, _ := strings.Cut(path, "/")
	switch first {
	case "graphql":
		return partGraphQL
	case "search":
		if rest == "code" {
			return partCodeSearch
		}
		return partSearch
	}
	for _, p := range rareParts {
		if p.begins != "" && first == p.begins || p.ends != "" && strings.HasSuffix(path, "/"+p.ends) {
			return p.part
		}
	}
	return partCore
}

// Cost returns what a request takes from the preset's limits: one from its part's primary limit, points by its
// method, and content if it creates any. A GraphQL query takes at least one; the next response shows what it really
// took.
func (g GitHub) Cost(method, path string) []sluice.Amount {
	method = strings.ToUpper(method)
	words := strings.Split(plainPath(path), "/")
	part := g.Part(path)
	if part == partGraphQL { // only the body says whether it is a mutation
		return []sluice.Amount{{Unit: part, N: 1}, {Unit: unitGraphQLPoints, N: 1}}
	}
	var cost []sluice.Amount
	if len(words) != 1 || words[0] != "rate_limit" { // asking for the limits is free, except for secondary limits
		cost = append(cost, sluice.Amount{Unit: part, N: 1})
	}
	if reads(method) {
		return append(cost, sluice.Amount{Unit: unitPoints, N: 1})
	}
	cost = append(cost, sluice.Amount{Unit: unitPoints, N: 5})
	if method != "DELETE" && !slices.ContainsFunc(words, byMachine) {
		cost = append(cost, sluice.Amount{Unit: unitContent, N: 1})
	}
	return cost
}

func reads(method string) bool {
	return method == "" || method == "GET" || method == "HEAD" || method == "OPTIONS"
}

// byMachine reports whether writes below this path segment create nothing that notifies people. GitHub does not
// define content, so all other writes count as content.
func byMachine(word string) bool {
	switch word {
	case "actions", "check-runs", "check-suites", "statuses", "git", "dispatches", "deployments", "markdown", "access_tokens":
		return true
	}
	return false
}

// plainPath returns a path without the query and without the prefix of a GitHub Enterprise server.
func plainPath(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path = strings.Trim(path, "/")
	if rest, ok := strings.CutPrefix(path, "api/"); ok {
		return strings.TrimPrefix(rest, "v3/")
	}
	return path
}
