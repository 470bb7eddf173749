// Package again marks acquires whose callers ask again at once. Such an answer turns nobody away, so no event tells of it.
package again

import "context"

type key struct{}

// With returns a context for an acquire. after reports whether the caller asks again after an error.
func With(ctx context.Context, after func(error) bool) context.Context {
	return context.WithValue(ctx, key{}, after)
}

// After reports whether the caller of an acquire asks again after an error.
func After(ctx context.Context, err error) bool {
	after, ok := ctx.Value(key{}).(func(error) bool)
	return ok && after(err)
}
