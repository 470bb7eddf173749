package remotestore

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// Timeouts for a daemon that does not answer.
const (
	dialWithin   = 2 * time.Second
	answerWithin = 3 * time.Second
	lookWithin   = 5 * time.Second  // for large or expensive answers
	reportWithin = 30 * time.Second // the daemon reads its whole event log
)

// maxAnswer bounds an answer. A snapshot with every list full has some megabytes.
const maxAnswer = 64 << 20

// errGone means that the daemon no longer knows the client or its pool.
var errGone = errors.New("the daemon does not know this process any more")

// errSilent means that no answer came. The request may have been carried out.
var errSilent = errors.New("no answer")

// errTooLarge means that the operations do not fit one request.
var errTooLarge = errors.New("the operations are too large to be sent")

// transport sends requests to the daemon.
type transport struct {
	base  *url.URL
	under string // path of all requests
	token string
	name  string // for errors
	http  *http.Client
}

func newTransport(base *url.URL, token, socket string) transport {
	name := base.Host
	dialer := &net.Dialer{Timeout: dialWithin}
	dial := dialer.DialContext
	if socket != "" {
		name = socket
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	}
	t := &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute, DisableCompression: true, DialContext: dial}
	return transport{base: base, under: "/v1/store", token: token, name: "the daemon at " + name, http: &http.Client{Transport: t, CheckRedirect: stay}}
}

// stay follows no redirects: a daemon sends none.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// silence is the error for a daemon that did not answer.
type silence struct{ err error }

func (e *silence) Error() string        { return store.ErrUnavailable.Error() + ": " + e.err.Error() }
func (e *silence) Unwrap() error        { return e.err }
func (e *silence) Is(target error) bool { return target == errSilent || target == store.ErrUnavailable }

// Hint says what to do about it.
func (e *silence) Hint() string {
	return "is a daemon running there? `sluice serve` starts one"
}

// silent marks an error as that of a daemon that did not answer.
func silent(err error) error { return &silence{err} }

// advice is an error with a hint.
type advice struct {
	err  error
	hint string
}

func (e *advice) Error() string { return e.err.Error() }
func (e *advice) Unwrap() error { return e.err }

// Hint says what to do about it.
func (e *advice) Hint() string { return e.hint }

func hinted(err error, hint string) error { return &advice{unavailable(err), hint} }

// unavailable marks an error of the daemon as one of the store.
func unavailable(err error) error { return fmt.Errorf("%w: %w", store.ErrUnavailable, err) }

// send makes a request. A returned response has status 200 or 204; other statuses are errors.
func (l *transport) send(ctx context.Context, method, path string, body []byte, kind string) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.base.String()+l.under+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set(wire.VersionHeader, wire.Version)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	resp, err := l.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest is the known address
		}
		if unproved, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return nil, hinted(fmt.Errorf("%s cannot be trusted: %w", l.name, unproved.Err), "its certificate has to be of an authority that this machine knows; SSL_CERT_FILE names a file with another")
		}
		return nil, silent(fmt.Errorf("%s does not answer: %w", l.name, err))
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	return nil, l.refused(resp)
}

// stranger is the error for another server at the daemon's address.
func (l *transport) stranger() error {
	return hinted(fmt.Errorf("%s does not answer: another server is there", l.name), "`sluice serve` says where it listens when it starts")
}

// refused converts an error response into an error.
func (l *transport) refused(resp *http.Response) error {
	var p struct{ Detail, Hint string }
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || json.Unmarshal(text, &p) != nil || p.Detail == "" {
		if resp.StatusCode >= http.StatusInternalServerError { // from a proxy in between: the request may have been carried out
			return silent(fmt.Errorf("%s answers %s", l.name, resp.Status))
		}
		return hinted(fmt.Errorf("%s answers %s: is it one?", l.name, resp.Status), "one that speaks TLS is at https://; what listens elsewhere, `sluice serve` says when it starts")
	}
	if resp.StatusCode == http.StatusUnauthorized {
		if l.token != "" {
			return hinted(fmt.Errorf("%s does not know this token", l.name), "correct SLUICE_TOKEN or the token in the store's address; tokens: in the daemon's configuration lists the hashes of valid tokens")
		}
		return hinted(fmt.Errorf("%s: %s", l.name, p.Detail), "set SLUICE_TOKEN, or put the token into the address: http://:TOKEN@HOST:PORT; for a sluice within sluice run, give the outer one --pass-token")
	}
	err = fmt.Errorf("%s: %s", l.name, p.Detail)
	switch resp.StatusCode {
	case http.StatusGone, http.StatusConflict: // or it remembers another state of the client
		return errGone
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge: // the store is available and rejects the request
		if p.Hint != "" {
			err = fmt.Errorf("%w; %s", err, p.Hint)
		}
		return err
	}
	if p.Hint != "" {
		return hinted(err, p.Hint)
	}
	return unavailable(err)
}

// ask sends JSON and reads JSON. Both may be nil.
func (l *transport) ask(ctx context.Context, method, path string, body, answer any) error {
	var text []byte
	kind := ""
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
		kind = "application/json"
	}
	resp, err := l.send(ctx, method, path, text, kind)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	if answer == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be reused
	} else {
		err = json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(answer)
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return l.stranger()
	}
	if err != nil {
		return unavailable(fmt.Errorf("%s: %w", l.name, err))
	}
	return nil
}

// within is ask with its own timeout.
func (l *transport) within(ctx context.Context, d time.Duration, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return l.ask(ctx, method, path, body, answer)
}

// apply sends a batch and returns the answer.
func (l *transport) apply(ctx context.Context, path string, body []byte) ([]byte, error) {
	return l.read(ctx, http.MethodPost, path, body, wire.ContentType)
}

// read makes a request and returns the whole answer.
func (l *transport) read(ctx context.Context, method, path string, body []byte, kind string) ([]byte, error) {
	resp, err := l.send(ctx, method, path, body, kind)
	if err != nil {
		return nil, err
	}
	return l.body(resp)
}

// body reads the whole answer.
func (l *transport) body(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, silent(fmt.Errorf("%s: %w", l.name, err))
	}
	return text, nil
}
