//go:build linux || darwin

package sdk_test

// jsonBody are the headers of a request with a body.
func jsonBody(more ...string) map[string]string {
	h := map[string]string{"Content-Type": "application/json", "X-Api-Key": key, "Authorization": "Bearer " + key}
	for i := 0; i+1 < len(more); i += 2 {
		h[more[i]] = more[i+1]
	}
	return h
}

const (
	messages  = `{"model":"claude-sonnet-5-5","max_tokens":200,"messages":[{"role":"user","content":"Flow"}]}`
	messagesS = `{"model":"claude-sonnet-5-5","max_tokens":200,"stream":true,"messages":[{"role":"user","content":"Flow on"}]}`
	chat      = `{"model":"gpt-6.1-terra","max_tokens":200,"messages":[{"role":"user","content":"Flow"}]}`
	chatUsage = `{"model":"gpt-6.1-terra","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Flow on"}]}`
	response  = `{"model":"gpt-6.1-terra","input":"Flow on","stream":true}`
)

// rawRequests are sent with nothing but node's own HTTP.
var rawRequests = map[string][]rawRequest{
	anthropic.script: {
		{"POST", "/v1/messages", jsonBody(), messages},
		{"POST", "/v1/messages?beta=true", jsonBody("Anthropic-Beta", "a,b"), messages},
		{"POST", "/v1/messages", jsonBody(), messagesS},
		{"POST", "/v1/messages", jsonBody("X-Mock", "trailers"), messages},
		{"POST", "/v1/messages", jsonBody("X-Mock", "trailers"), messagesS},
		{"POST", "/v1/messages", jsonBody("X-Mock", "gzip", "Accept-Encoding", "gzip"), messages},
		{"POST", "/v1/messages", jsonBody("X-Mock", "gzip", "Accept-Encoding", "gzip"), messagesS},
		{"POST", "/v1/messages", jsonBody("X-Mock", "body=300KB"), messages},
		{"POST", "/v1/messages", jsonBody("X-Mock", "no-usage"), messages},
		{"POST", "/v1/messages", jsonBody("X-Mock", "status=500"), messages},
		{"POST", "/v1/messages", jsonBody(), `{"model":"claude-sonnet-5-5"`},
		{"POST", "/v1/messages/count_tokens", jsonBody(), messages},
		{"GET", "/v1/models?limit=2&after_id=a%2Fb", jsonBody(), ""},
		{"GET", "/v1/nothing//here%2F%20there", jsonBody(), ""},
		{"DELETE", "/v1/messages", jsonBody(), ""},
		{"HEAD", "/", jsonBody(), ""},
	},
	openai.script: {
		{"POST", "/v1/chat/completions", jsonBody(), chat},
		{"POST", "/v1/chat/completions", jsonBody(), chatUsage},
		{"POST", "/v1/chat/completions", jsonBody("X-Mock", "trailers"), chatUsage},
		{"POST", "/v1/chat/completions", jsonBody("X-Mock", "gzip", "Accept-Encoding", "gzip"), chatUsage},
		{"POST", "/v1/chat/completions", jsonBody("X-Mock", "status=400"), chat},
		{"POST", "/v1/responses", jsonBody(), response},
		{"POST", "/v1/responses", jsonBody("X-Mock", "error-in-200"), response},
		{"GET", "/v1/models", jsonBody(), ""},
	},
	octokit.script: {
		{"GET", "/repos/octo/locks", jsonBody(), ""},
		{"HEAD", "/repos/octo/locks", jsonBody(), ""},
		{"GET", "/repos/octo/a%2Fb/issues?per_page=2&page=3", jsonBody(), ""},
		{"GET", "/repos/octo/locks", jsonBody("X-Mock", "gzip, trailers"), ""},
		{"GET", "/repos/octo/nothing//here", jsonBody(), ""},
		{"POST", "/repos/octo/locks/issues", jsonBody(), `{"title":"It leaks"}`},
		{"POST", "/graphql", jsonBody(), `{"query":"query { viewer { login } }"}`},
	},
}
