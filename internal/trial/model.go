package trial

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sim/mock"
)

// call is one call of a provider's API. An empty body is a GET.
type call struct{ path, body string }

const (
	chatBody     = `{"model":"check","max_tokens":20,"messages":[{"role":"user","content":"Say hello."}]}`
	geminiBody   = `{"contents":[{"role":"user","parts":[{"text":"Say hello."}]}]}`
	chatPath     = "/chat/completions"
	version      = "/v1"
	messagesPath = version + "/messages"
)

// calls lists calls that providers answer, by provider. Those of the first four have a model of their own, the others of
// OpenAI's kind have its model.
var calls = map[string]call{
	"anthropic":  {messagesPath, chatBody},
	"openai":     {version + chatPath, chatBody},
	"gemini":     {"/v1beta/models/check:generateContent", geminiBody},
	"github":     {"/repos/check/check", ""},
	"groq":       {"/openai/v1" + chatPath, chatBody},
	"mistral":    {version + chatPath, chatBody},
	"xai":        {version + chatPath, chatBody},
	"deepseek":   {chatPath, chatBody},
	"openrouter": {"/api/v1" + chatPath, chatBody},
	"cohere":     {"/v2/chat", chatBody},
}

// model returns a model of a provider.
func (b *Bench) model(name string) (http.Handler, error) {
	kind := "generic"
	switch c := calls[name]; {
	case name == "anthropic" || name == "gemini" || name == "github":
		kind = name
	case strings.HasSuffix(c.path, chatPath):
		kind = "openai"
	}
	m, err := mock.New(mock.Options{Provider: kind})
	if err != nil {
		return nil, err
	}
	b.models = append(b.models, m)
	if kind != "openai" {
		return m, nil
	}
	prefix := strings.TrimSuffix(calls[name].path, chatPath)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		if rest, ok := strings.CutPrefix(r.URL.Path, prefix); ok {
			r.URL.Path, r.URL.RawPath = version+rest, ""
		}
		m.ServeHTTP(w, r)
	}), nil
}

// isExact reports whether a provider's model states the usage of its calls.
func isExact(name string) bool { return calls[name].body != "" && name != "cohere" }

// call makes a call as a library would: to the address in its variable, or to the provider's own through a proxy.
func (b *Bench) call(ctx context.Context, c *clients.Client) error {
	if len(c.Providers) == 0 {
		return noCall
	}
	name := c.Providers[0]
	to, known := calls[name]
	if !known {
		return noCall
	}
	d, _ := provider.Lookup(name)
	address, through := addressOf(d)+to.path, b.open
	if !c.Intercepts() {
		variables, suffix := b.bases(c)
		base, ok := variables[name]
		if !ok {
			return noCall
		}
		address, through = base+strings.TrimPrefix(to.path, suffix[name]), ""
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(b.roots)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	if through != "" {
		at := b.proxyURL(through, c)
		transport.Proxy = func(*http.Request) (*url.URL, error) { return at, nil }
	}
	method := http.MethodPost
	if to.body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewBufferString(to.body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	if len(c.UserAgents) > 0 {
		r.Header.Set("User-Agent", c.UserAgents[0])
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("a call as it makes them failed: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("the response broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("a call as it makes them was answered with %s", resp.Status)
	}
	return nil
}
