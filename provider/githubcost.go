package provider

import (
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
)

// The parts of the API that have primary limits of their own and are told by their paths.
const (
	partCore       = "core"
	partSearch     = "search"
	partCodeSearch = "code_search"
	partGraphQL    = "graphql"
)

// Units of the preset that no part is named after.
const (
	unitPoints        = "points"
	unitGraphQLPoints = "graphql_points"
	unitContent       = "content"
)

// githubWindow is the window of a primary limit, 0 if it is not known.
func githubWindow(part string) time.Duration {
	switch part {
	case partCore, partGraphQL:
		return time.Hour
	case partSearch, partCodeSearch:
		return time.Minute
	}
	return 0
}

// rareParts are parts of the API that few requests are for, by where their paths begin or
// end. Their limits are not in the preset, but one of them that is used up must not hold core.
var rareParts = [...]struct{ begins, ends, part string }{
	{begins: "scim", part: "scim"},
	{begins: "app-manifests", part: "integration_manifest"},
	{ends: "code-scanning/sarifs", part: "code_scanning_upload"},
	{ends: "dependency-graph/snapshots", part: "dependency_snapshots"},
	{ends: "dependency-graph/sbom", part: "dependency_sbom"},
	{ends: "actions/runners/registration-token", part: "actions_runner_registration"},
}

// Part is the part of the API that a path belongs to.
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

// Cost is what a request takes of the preset's limits: one of its part's primary limit, points
// by its method, and content if it makes any. A GraphQL query takes one at least; what it really
// took, the next answer shows.
func (g GitHub) Cost(method, path string) []sluice.Amount {
	method = strings.ToUpper(method)
	words := strings.Split(plainPath(path), "/")
	part := g.Part(path)
	if part == partGraphQL { // whether it is a mutation only the body says
		return []sluice.Amount{{Unit: part, N: 1}, {Unit: unitGraphQLPoints, N: 1}}
	}
	var cost []sluice.Amount
	if len(words) != 1 || words[0] != "rate_limit" { // asking what is left is free, but for the secondary limits
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

// byMachine reports a part of a path below which writes make nothing that people are notified
// of. GitHub does not say what content is; everything else counts as it.
func byMachine(word string) bool {
	switch word {
	case "actions", "check-runs", "check-suites", "statuses", "git", "dispatches", "deployments", "markdown", "access_tokens":
		return true
	}
	return false
}

// plainPath is a path without the query and without what a GitHub Enterprise server puts
// before it.
func plainPath(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path = strings.Trim(path, "/")
	if rest, ok := strings.CutPrefix(path, "api/"); ok {
		return strings.TrimPrefix(rest, "v3/")
	}
	return path
}
