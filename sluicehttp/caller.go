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

// Caller is who sends a request. The zero value of a field means the transport's, else the gate's default.
type Caller struct {
	// Agent is who asks. If nobody says, it is $SLUICE_AGENT, else the name of the program.
	Agent string
	Class string
	User  string
	Tool  string
	// Emergency lets a request of the highest class go first.
	Emergency bool
	// Retry tells that an earlier send of the same request failed: then it is sent once only, because
	// whoever tries again does so already.
	Retry bool
	// Wait is how long a request may wait until it is sent, for the first time or again. 0 means as long as
	// the context allows.
	Wait time.Duration
	// RequestID names the request in logs. It is passed on to [Exchange].
	RequestID string
	// Parsed, if it is set, is told what the request asks for, before the request waits. It must not block.
	Parsed func(*provider.ParsedRequest)
}

type callerKey struct{}

// WithCaller tells who sends the requests that are made with the context. What it leaves empty is the
// transport's.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &c)
}

// caller is who sends a request: as its context, its headers, the transport and the environment say.
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

// Headers by which clients tell that they send a request again.
const (
	headerStainless = "X-Stainless-Retry-Count" // of the SDKs of Anthropic, OpenAI and others
	headerRetry     = "X-Sluice-Retry"          // of anybody; it goes no further
)

// Retried reports that a request's header says that it was sent before.
func Retried(h http.Header) bool { return retried(h) }

func retried(h http.Header) bool { return counts(h, headerStainless) || counts(h, headerRetry) }

// counts reports a header that is there and does not say that there was nothing.
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

// program is the agent of a process that names none.
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
