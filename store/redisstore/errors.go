package redisstore

import (
	"context"
	"errors"
	"strings"

	"github.com/sluicehq/sluice/internal/redisfault"
	"github.com/sluicehq/sluice/internal/redisurl"
	"github.com/sluicehq/sluice/internal/sharedlog"
)

// Error is the error of an [Engine]: what failed, at which address, and what to do about it.
type Error struct {
	kind  error // of package sharedlog
	at    string
	what  string
	hint  string
	cause error // nil if its text held a password
}

func (e *Error) Error() string { return e.at + ": " + e.what }

// What returns what failed, without the address.
func (e *Error) What() string { return e.what }

// Hint says what to do, or is "".
func (e *Error) Hint() string { return e.hint }

// Unwrap returns the error of package sharedlog, and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// fail classifies an error of rueidis or of a context. Old servers quote the arguments of unknown commands, which may include
// a password: fail removes it, and drops the original error.
func (c *conn) fail(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if c.life.Err() != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		err = redisfault.ErrClosed
	}
	if c.address.Mode == redisurl.Single && redisfault.IsReplica(err) {
		c.renew()
	}
	v := redisfault.Judge(err)
	if c.address.TLS {
		v = v.OverTLS()
	}
	e := &Error{kind: sharedlog.ErrUnavailable, at: c.name, cause: err}
	switch {
	case v.Full:
		e.kind = sharedlog.ErrFull
	case v.Fault == redisfault.Unfit:
		e.kind = sharedlog.ErrUnfit
	case v.Fault == redisfault.Closed:
		e.kind = sharedlog.ErrClosed
	case v.Fault == redisfault.Script:
		e.kind = sharedlog.ErrDamaged // a key of the log holds something else
	}
	if _, found := c.address.Redact(err.Error()); found {
		e.cause = nil
		v.Detail, _ = c.address.Redact(v.Detail)
	}
	if e.what = v.Text(); replied(err, "WRONGTYPE") {
		e.what = "a key is damaged: it is of another kind than those that Sluice writes"
	}
	e.hint = strings.ReplaceAll(v.Hint, "PREFIX", c.address.Prefix)
	return e
}

// refused is fail for a reply to the first call. No script of ours has run yet, so an error of one means that the server
// cannot be used.
func (c *conn) refused(err error) error {
	e := c.fail(err).(*Error)           //nolint:errorlint // fail makes it
	if e.kind == sharedlog.ErrDamaged { //nolint:errorlint // as above
		e.kind, e.what = sharedlog.ErrUnfit, strings.Replace(e.what, "the script failed", "Redis refuses the connection", 1)
	}
	return e
}

func (c *conn) unfit(what, hint string) error {
	return &Error{kind: sharedlog.ErrUnfit, at: c.name, what: what, hint: hint}
}
