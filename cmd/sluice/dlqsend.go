package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/sluicehttp"
)

// resend says how requests are sent again.
type resend struct {
	quiet  bool
	keyEnv string // variable with the key; empty means the configured one, or the provider's usual one
	output string // file for the response body; empty means that it is discarded
}

// send sends the request of an entry again, through the gate. It removes the entry on success and keeps it otherwise.
func (how *resend) send(cmd *cobra.Command, c *deadletter.Claim) (stopped bool, err error) {
	e := c.Entry()
	if e.Request.Lost != "" {
		return false, &failure{
			code: exitUsage, message: fmt.Sprintf("dead letter %s has no body: %s", e.ID, e.Request.Lost),
			hint: "send it again from its client; sluice dlq drop " + e.ID + " removes it",
		}
	}
	s, back, err := reopen(cmd, &e)
	if err != nil {
		return false, err
	}
	defer back()
	r := withOneKey(s.file, e.Resource)
	header, value, err := how.key(&e, &r)
	if err != nil {
		return false, err
	}
	// The request is sent from here, with the current key, and already has an entry.
	r.Inject, r.DeadLetters, s.file.Tokens = nil, config.Off, nil
	s.file.Resources[e.Resource] = r
	var told sluicehttp.Exchange
	d, err := s.daemon(&daemon.Options{Done: func(x sluicehttp.Exchange) { told = x }})
	if err != nil {
		return false, err
	}
	defer d.Settle()
	ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	req, err := again(ctx, &e)
	if err != nil {
		return false, err
	}
	if value != "" {
		req.Header.Set(header, value)
	}
	if !how.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "sluice: dead letter %s: %s\n", e.ID, harmless(subject(&e)))
	}
	w, err := newAnswerWriter(cmd.OutOrStdout(), how.output)
	if err != nil {
		return false, err
	}
	whole := serveOnce(d, w, req)
	if err := w.close(); err != nil {
		return ctx.Err() != nil, &failure{code: exitUnavailable, message: "the answer could not be written: " + err.Error(), hint: "check permissions and free space there; the dead letter is kept"}
	}
	if whole && w.status < 400 {
		if err := c.Remove(); err != nil {
			return false, &failure{code: exitUnavailable, message: "it succeeded, but could not be removed: " + err.Error(), hint: "sluice dlq drop " + e.ID}
		}
		if !how.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "sluice: dead letter %s: status %d, %d bytes\n", e.ID, w.status, w.n)
		}
		return false, nil
	}
	return ctx.Err() != nil, how.failed(c, w, &told, ctx.Err() != nil)
}

// failed updates an entry that was given up again.
func (how *resend) failed(c *deadletter.Claim, w *answerWriter, told *sluicehttp.Exchange, stopped bool) error {
	e := c.Entry()
	now := time.Now().UTC().Truncate(time.Millisecond)
	e.Time, e.Last, e.Rounds, e.Attempts = now, now, e.Rounds+1, e.Attempts+told.Attempts
	a := deadletter.Answer{Time: now, Status: told.Status, Verdict: told.Verdict.String()}
	e.Reason = fmt.Sprintf("status %d", w.status)
	switch {
	case stopped:
		e.Reason = "stopped by a signal"
	case told.Status == 0:
		a.Verdict, e.Reason = "", "no answer from the provider"
	}
	e.Request.Answers = append(e.Request.Answers, a)
	f := &failure{
		code: exitNotYet, message: fmt.Sprintf("dead letter %s was given up again: %s", e.ID, e.Reason),
		hint: fmt.Sprintf("it is still there: sluice dlq show %s tells more", e.ID),
	}
	if told.Status >= 400 && told.Status < 500 && told.Status != http.StatusTooManyRequests && told.Status != http.StatusRequestTimeout {
		f.code, f.message = exitRefused, fmt.Sprintf("dead letter %s: the provider refuses it with status %d", e.ID, told.Status)
	}
	if err := c.Update(e); err != nil {
		f.detail = "error: the dead letter could not be updated: " + err.Error()
	}
	return f
}

// again returns the request of an entry, in the form that the gate accepts.
func again(ctx context.Context, e *deadletter.Entry) (*http.Request, error) {
	at := "http://127.0.0.1"
	if e.Agent != "" {
		at += "/@" + url.PathEscape(e.Agent)
		if e.Class != "" {
			at += ":" + url.PathEscape(e.Class)
		}
	}
	at += "/" + url.PathEscape(e.Resource) + "/" + strings.TrimPrefix(e.Request.Path, "/")
	req, err := http.NewRequestWithContext(ctx, e.Request.Method, at, strings.NewReader(string(e.Request.Body)))
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "dead letter " + e.ID + " is damaged: its path or method is invalid", hint: "sluice dlq drop " + e.ID + " removes it"}
	}
	req.RemoteAddr = "127.0.0.1:1"
	for name, values := range e.Request.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	for name, value := range map[string]string{userHeader: e.User, "X-Sluice-Tool": e.Tool} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if e.Emergency {
		req.Header.Set("X-Sluice-Emergency", "1")
	}
	return req, nil
}

// key returns the authentication header and its value: from the variable that the flag names, the configured one, or
// the provider's usual one. Both are empty if the request had no key.
func (how *resend) key(e *deadletter.Entry, r *config.Resource) (header, value string, err error) {
	had := ""
	for _, name := range e.Request.Left {
		if !strings.HasPrefix(name, "?") {
			had = name
			break
		}
	}
	usual := freeCalls[r.Provider]
	header, prefix, variables := usual.header, usual.prefix, usual.variables
	if r.Inject != nil {
		header, prefix, variables = r.Inject.Header, r.Inject.Prefix, []string{r.Inject.Env}
	}
	if how.keyEnv != "" {
		variables = []string{how.keyEnv}
		if header == "" {
			if header = cmp.Or(had, "Authorization"); header == "Authorization" {
				prefix = "Bearer "
			}
		}
	}
	for _, name := range variables {
		if key := strings.TrimSpace(os.Getenv(name)); key != "" && !strings.ContainsAny(key, "\r\n\x00") {
			return header, prefix + key, nil
		}
	}
	switch {
	case len(e.Request.Left) == 0 && how.keyEnv == "":
		return "", "", nil
	case len(variables) > 0:
		return "", "", &failure{
			code: exitUsage, message: fmt.Sprintf("dead letter %s needs a key for %s, and %s is not set", e.ID, e.Resource, strings.Join(variables, " or ")),
			hint: "keys are never kept: set the variable, or name another with --key-env",
		}
	}
	return "", "", &failure{
		code: exitUsage, message: fmt.Sprintf("dead letter %s needs a key for %s: it was sent with %s", e.ID, e.Resource, strings.Join(e.Request.Left, ", ")),
		hint: "keys are never kept: name the variable that holds it with --key-env NAME",
	}
}

// serveOnce serves a request with a handler, and reports whether the response is complete.
func serveOnce(h http.Handler, w http.ResponseWriter, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
		}
	}()
	h.ServeHTTP(w, r)
	return true
}

// answerWriter receives a response, and writes the body of a successful one to its destination.
type answerWriter struct {
	header http.Header
	status int
	n      int64
	out    io.Writer
	file   *os.File
	err    error
}

func newAnswerWriter(stdout io.Writer, to string) (*answerWriter, error) {
	w := &answerWriter{header: http.Header{}, out: io.Discard}
	switch to {
	case "":
	case "-":
		w.out = stdout
	default:
		f, err := statedir.Open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
		if err != nil {
			return nil, &failure{code: exitUsage, message: "--output: " + err.Error(), hint: "name a file that can be written, or - for standard output"}
		}
		w.out, w.file = f, f
	}
	return w, nil
}

func (w *answerWriter) Header() http.Header { return w.header }

func (w *answerWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answerWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.n += int64(len(p))
	if w.err == nil && w.status < 400 {
		_, w.err = w.out.Write(p)
	}
	return len(p), nil
}

func (w *answerWriter) close() error {
	if w.file != nil {
		w.err = errors.Join(w.err, w.file.Close())
	}
	return w.err
}
