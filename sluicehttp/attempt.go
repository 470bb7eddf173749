package sluicehttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/upstream"
)

// attempt is one send of a request. It includes the sends that net/http repeats by itself, each with its own ticket.
type attempt struct {
	f      *flight
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc

	// The hooks of a trace may be called from any goroutine, even after the end of the send.
	traced atomic.Bool // the base transport calls the hooks
	wrote  atomic.Bool // the header was written
	begun  atomic.Bool // a first byte of the response has come
	mu     sync.Mutex
	ticket sluice.Ticket
	conn   net.Conn // the connection of the request; nil: none yet
	over   bool
	err    error // why the attempt was stopped
	hung   bool  // the slow connection was reported
	// resolving is set while the host name is looked up.
	resolving bool
	// watched is set if the attempt is or was in the list of connecting attempts. The fields below belong to that list.
	watched        bool
	waits          bool
	hangsAt        time.Time
	before, behind *attempt
}

// patient is a context with an earlier deadline, for the gate only. The gate's store observes the deadline, so no timer
// is needed.
type patient struct {
	context.Context
	until time.Time
}

func (p *patient) Deadline() (time.Time, bool) { return p.until, true }

func (p *patient) Err() error {
	if err := p.Context.Err(); err != nil || time.Now().Before(p.until) {
		return err
	}
	return context.DeadlineExceeded
}

// acquire waits for the request's turn. until is the latest time to send it; zero means no bound.
func (f *flight) acquire(ctx context.Context, until time.Time) (sluice.Ticket, error) {
	if f.observe {
		return f.note(ctx)
	}
	wait := ctx
	if !until.IsZero() {
		if own, ok := ctx.Deadline(); !ok || until.Before(own) {
			f.patience = patient{ctx, until}
			wait = &f.patience
		}
	}
	began := time.Now()
	ticket, again, err := f.inTurn(wait)
	for tries := 0; err != nil && tries < 4 && f.shrink(ctx, err); tries++ { // several limits may be too small
		ticket, err = f.t.Gate.Acquire(wait, f.ask)
	}
	if err == nil && ticket.Stale() {
		if err = ticket.Renew(wait); err != nil {
			_ = ticket.Cancel()                  // the store still has it if it could not be asked
			if errors.Is(err, sluice.ErrEnded) { // the store took this process for dead
				ticket, err = f.t.Gate.Acquire(wait, f.ask)
			}
		}
	}
	if err != nil {
		return sluice.Ticket{}, f.late(err, wait != ctx && ctx.Err() == nil && !time.Now().Before(until))
	}
	waited := ticket.Waited()
	if again {
		waited = time.Since(began)
	}
	f.told.Waited += waited
	if label := ticket.Key(); label != "" {
		f.use(label)
	}
	return ticket, nil
}

// note counts a request that is sent in any case. If the gate rejects it as invalid, it goes without a ticket.
func (f *flight) note(ctx context.Context) (sluice.Ticket, error) {
	ticket, err := f.t.Gate.Acquire(ctx, f.ask)
	if err != nil {
		return sluice.Ticket{}, ctx.Err()
	}
	return ticket, nil
}

// late turns err into a deadline error if the time that the caller allows for waiting has passed.
func (f *flight) late(err error, passed bool) error {
	var e *sluice.Error
	if !passed || !errors.As(err, &e) || !errors.Is(err, sluice.ErrDeadline) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &sluice.Error{
		Err: sluice.ErrDeadline, Resource: e.Resource, Agent: e.Agent, Limit: e.Limit, RetryAt: e.RetryAt, Reason: "deadline",
		Message: fmt.Sprintf("%s: its turn did not come within %v", f.t.Resource, time.Since(f.start).Round(time.Millisecond)),
		Hint:    "let it wait longer, or come back later",
	}
}

// send sends the request once.
func (a *attempt) send() (*http.Response, error) {
	f := a.f
	a.ctx, a.cancel = context.WithCancelCause(f.ctx)
	trace := &httptrace.ClientTrace{GetConn: a.getConn, DNSStart: a.dnsStart, DNSDone: a.dnsDone, GotConn: a.gotConn, WroteHeaders: a.wroteHeaders, GotFirstResponseByte: a.responseBegins}
	req := f.origin.WithContext(httptrace.WithClientTrace(a.ctx, trace))
	req.Header = f.header
	var err error
	if req.Body, err = f.payload.open(); err != nil {
		return nil, &badRequest{fmt.Errorf("sluicehttp: the request's body could not be read again: %w", err)}
	}
	req.GetBody = nil
	if f.payload.replayable() {
		req.GetBody = f.payload.open
	}
	if req.ContentLength > 0 {
		req.ContentLength += f.grown
	}
	if f.path != "" {
		u := *req.URL
		if u.Path, err = url.PathUnescape(f.path); err != nil {
			_ = req.Body.Close()
			return nil, &badRequest{fmt.Errorf("sluicehttp: the path of another model makes no sense: %w", err)}
		}
		u.RawPath = f.path
		req.URL = &u
	}
	if f.key != nil {
		req.Header = req.Header.Clone()
		f.key.turn(req, f.t.Upstream, f.t.dialect)
	}
	a.began = time.Now()
	f.told.Attempts++
	way := f.t.base.RoundTrip
	if f.line.Sends() {
		way = f.line.Send
	}
	if f.away != nil {
		way = f.away.Send
	}
	resp, err := way(req)
	err = upstream.At(err, req.URL.Host)
	if f.traced != nil {
		f.told.Sent = a.began
		if err == nil {
			f.told.Answered = time.Now()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.unwatch()
	if a.err != nil { // the gate did not let it go, whatever the outcome
		if resp != nil {
			_ = resp.Body.Close()
		}
		return nil, a.err
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols && !f.line.Opens() {
		_ = resp.Body.Close()
		return nil, ErrSwitched
	}
	if err != nil && a.tells() && !a.traced.Load() && !f.line.Sends() && f.away == nil {
		err = &badRequest{err}
	}
	return resp, err
}

func (a *attempt) getConn(string) {
	a.traced.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchConnecting()
}

func (a *attempt) dnsStart(httptrace.DNSStartInfo) { a.resolves(true) }
func (a *attempt) dnsDone(httptrace.DNSDoneInfo)   { a.resolves(false) }

func (a *attempt) resolves(now bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resolving = now
}

func (a *attempt) wroteHeaders()   { a.wrote.Store(true) }
func (a *attempt) responseBegins() { a.begun.Store(true) }

// gotConn is called just before the request is written, by the goroutine that sends it. Connecting may have taken so
// long that the ticket is stale. If this is not the first call, net/http is sending the request again by itself,
// because the connection was closed: that is one more request, which needs its own ticket.
func (a *attempt) gotConn(info httptrace.GotConnInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = info.Conn
	a.unwatch()
	if a.over || a.err != nil || a.f.asked.Free {
		return
	}
	var err error
	switch {
	case a.wrote.Swap(false):
		a.begun.Store(false)
		a.f.refund(a.ticket, nil) // first, or it might wait for its own concurrency
		again := a.f.ask.Retry
		a.f.ask.Retry = true
		a.f.pinned(func() { a.ticket, err = a.f.acquire(a.ctx, a.f.latest()) })
		a.f.ask.Retry = again
		a.f.told.Attempts++
	case a.ticket.Stale():
		if err = a.ticket.Renew(a.ctx); err != nil {
			_ = a.ticket.Cancel()
			a.ticket = sluice.Ticket{}
			if errors.Is(err, sluice.ErrEnded) { // the store took this process for dead
				a.f.pinned(func() { a.ticket, err = a.f.acquire(a.ctx, a.f.latest()) })
			}
		}
	}
	if err != nil {
		a.err = err
		a.cancel(err)
		// A cancelled request may still be written, because net/http does both at the same time. Closing the connection
		// prevents that. An HTTP/2 connection also carries other requests and stays open: there cancelling has to do.
		if !a.f.mayBeHTTP2(info.Conn) {
			_ = info.Conn.Close()
		}
	}
}

// unsent reports whether it is certain that nothing was sent that the provider could count. A request whose header was
// not written completely does not count. With HTTP/2 the header may be out before the hook is called.
func (a *attempt) unsent() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tells() && !a.wrote.Load() && (a.conn == nil || !a.f.mayBeHTTP2(a.conn))
}

// tells reports whether the base transport calls the hooks.
func (a *attempt) tells() bool {
	_, known := a.f.t.base.(*http.Transport)
	return known || a.traced.Load() || a.f.line.Sends() || a.f.away != nil
}

func (f *flight) mayBeHTTP2(conn net.Conn) bool {
	if c, ok := conn.(*tls.Conn); ok {
		return c.ConnectionState().NegotiatedProtocol == "h2"
	}
	base, ok := f.t.base.(*http.Transport)
	return !ok || base.Protocols != nil && base.Protocols.UnencryptedHTTP2()
}

// end takes the ticket away from the attempt. The caller must end it.
func (a *attempt) end() sluice.Ticket {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.ticket
	a.ticket = sluice.Ticket{}
	return t
}
