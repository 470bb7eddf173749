package main

import (
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/sluicehq/sluice/config"
)

// freeCall is a call that costs nothing and shows whether a key is valid. The key comes from the first variable that is
// set.
type freeCall struct {
	path      string
	header    string // for the key
	prefix    string // before the key
	variables []string
	more      map[string]string // further headers that are needed
}

func bearerCall(path string, variables ...string) freeCall {
	return freeCall{path: path, header: "Authorization", prefix: "Bearer ", variables: variables}
}

// freeCalls holds the free call of each provider, by name. None of them uses up a quota that matters.
var freeCalls = map[string]freeCall{
	"anthropic":  {path: "/v1/models?limit=1", header: "X-Api-Key", variables: []string{"ANTHROPIC_API_KEY"}, more: map[string]string{"Anthropic-Version": "2023-06-01"}},
	"openai":     bearerCall("/v1/models", "OPENAI_API_KEY"),
	"gemini":     {path: "/v1beta/models?pageSize=1", header: "X-Goog-Api-Key", variables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
	"github":     bearerCall("/rate_limit", "GH_TOKEN", "GITHUB_TOKEN"),
	"groq":       bearerCall("/openai/v1/models", "GROQ_API_KEY"),
	"mistral":    bearerCall("/v1/models", "MISTRAL_API_KEY"),
	"xai":        bearerCall("/v1/models", "XAI_API_KEY"),
	"deepseek":   bearerCall("/user/balance", "DEEPSEEK_API_KEY"),
	"openrouter": bearerCall("/api/v1/key", "OPENROUTER_API_KEY"),
	"cohere":     bearerCall("/v1/models?page_size=1", "CO_API_KEY", "COHERE_API_KEY"),
}

// request builds the call to an address. The key is the configured one, or else that of the environment. It returns nil
// and the reason if there is no such call or no key.
func (f *freeCall) request(at *url.URL, in *config.Inject) (q *http.Request, from, without string) {
	header, prefix, variables := f.header, f.prefix, f.variables
	if in != nil {
		header, prefix, variables = in.Header, in.Prefix, []string{in.Env}
	}
	key := ""
	for _, name := range variables {
		if key = strings.TrimSpace(os.Getenv(name)); key != "" {
			from = name
			break
		}
	}
	switch {
	case f.path == "":
		return nil, "", "no call is known that costs nothing"
	case key == "":
		return nil, "", "no key: set " + strings.Join(variables, " or ")
	case strings.ContainsAny(key, "\r\n\x00"):
		return nil, "", "the variable " + from + " holds no key"
	}
	path, query, _ := strings.Cut(f.path, "?")
	u := *at
	u.Path, u.RawPath, u.RawQuery = strings.TrimSuffix(at.Path, "/")+path, "", query
	q = &http.Request{Method: http.MethodGet, URL: &u, Host: u.Host, Header: http.Header{"User-Agent": {"sluice"}, "Accept": {"application/json"}}}
	for name, value := range f.more {
		q.Header.Set(name, value)
	}
	q.Header.Set(header, prefix+key)
	return q, from, ""
}
