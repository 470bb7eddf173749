package sluicehttp

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/provider"
)

// Caller says who sends a request. An empty field takes the transport's value, then the gate's default.
type Caller struct {
	// Agent is the name of the agent. The default is $SLUICE_AGENT, then the name of the program.
	Agent string
	Class string
	User  string
	Tool  string
	// Emergency lets a request of the highest class go first.
	Emergency bool
	// Retry is set if an earlier send of the same request failed. The request is then sent only once, because the
	// caller retries by itself.
	Retry bool
	// Wait bounds the time from the start of a request to its last send, retries included. 0 means as long as the
	// context allows.
	Wait time.Duration
	// RequestID names the request in logs. It is passed on to [Exchange].
	RequestID string
	// Parsed, if set, is called with what the request asks for, before the request waits. It must not block.
	Parsed func(*provider.ParsedRequest)
}

type callerKey struct{}

// WithCaller sets the caller of requests made with the context. Empty fields take the transport's values.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &c)
}

// caller returns the caller of a request, from its context, its headers, the transport and the environment.
func (t *Transport) caller(r *http.Request) Caller {
	c := t.Caller
	if own, ok := r.Context().Value(callerKey{}).(*Caller); ok {
		c.Agent, c.Class = cmp.Or(own.Agent, c.Agent), cmp.Or(own.Class, c.Class)
		c.User, c.Tool, c.Wait = cmp.Or(own.User, c.User), cmp.Or(own.Tool, c.Tool), cmp.Or(own.Wait, c.Wait)
		c.Emergency, c.Retry = c.Emergency || own.Emergency, c.Retry || own.Retry
		c.RequestID, c.Parsed = own.RequestID, own.Parsed
	}
	if c.Agent == "" {
		c.Agent = program()
	}
	c.Retry = c.Retry || retried(r.Header)
	return c
}

// Headers in which clients state that a request is a retry.
const (
	headerStainless = "X-Stainless-Retry-Count" // set by the SDKs of Anthropic, OpenAI and others
	headerRetry     = "X-Sluice-Retry"          // for any client; not sent to the provider
)

// Retried reports whether a request's header marks it as a retry.
func Retried(h http.Header) bool { return retried(h) }

func retried(h http.Header) bool { return counts(h, headerStainless) || counts(h, headerRetry) }

// counts reports whether a header is present with a positive number or true.
func counts(h http.Header, name string) bool {
	if len(h[name]) == 0 {
		return false
	}
	value := strings.TrimSpace(h[name][0])
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return n > 0
	}
	again, err := strconv.ParseBool(value)
	return err == nil && again
}

// program returns the default agent of this process.
var program = sync.OnceValue(func() string {
	if name := os.Getenv("SLUICE_AGENT"); name != "" {
		return name
	}
	if len(os.Args) > 0 {
		if name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); name != "" && name != "." {
			return name
		}
	}
	return "unnamed"
})
