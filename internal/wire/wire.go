// Package wire lets requests of package sluicehttp open a connection over which many calls go, such as a WebSocket, and go over one
// that is open.
package wire

import (
	"context"
	"errors"
	"net/http"

	"github.com/sluicehq/sluice/provider"
)

// ErrGone is the error of a call whose connection has ended. The call cannot be sent again.
var ErrGone = errors.New("the connection to the provider is gone")

// Line is such a connection, or one that is to be opened.
type Line struct {
	// Send sends a call over the connection and returns the answer when it has begun. It tells the request's
	// [net/http/httptrace.ClientTrace] WroteHeaders when the call is written. Nil means that the request opens the connection.
	Send func(*http.Request) (*http.Response, error)
	// Gone reports that the connection has ended. It is there where Send is.
	Gone func() bool
	// Asked is what the call asks for. Nil means that the dialect reads it in the request's body.
	Asked *provider.ParsedRequest
	// Key is the label of the key that the connection was opened with. The transport sets it when it has opened the connection.
	Key string
}

// Opens reports a request that opens the connection.
func (l *Line) Opens() bool { return l != nil && l.Send == nil }

// Sends reports a call that goes over the connection.
func (l *Line) Sends() bool { return l != nil && l.Send != nil }

type key struct{}

// With returns a context for a request that opens a connection, or goes over one.
func With(ctx context.Context, l *Line) context.Context { return context.WithValue(ctx, key{}, l) }

// Of returns the line of a request; nil: it goes as any other.
func Of(ctx context.Context) *Line {
	l, _ := ctx.Value(key{}).(*Line)
	return l
}
