package api

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// How a response ends.
const (
	complete = "complete"
	left     = "left"   // the client has closed it
	broken   = "broken" // the connection to the provider broke
)

// found returns the exchange that the path names, if the caller may report to it.
func (a *API) found(c *call) (*exchange, error) {
	id := c.r.PathValue("id")
	x := a.sending.find(id)
	if x == nil {
		return nil, &Problem{Status: http.StatusNotFound, Detail: "there is no such exchange, or it has ended", Hint: fmt.Sprintf("an exchange ends when its client is silent for %v", silentFor)}
	}
	if (c.who.Agent != "" || c.bounded()) && x.owner != c.who.Token {
		return nil, &Problem{Status: http.StatusForbidden, Detail: "the exchange belongs to another token", Hint: "use the token that began it"}
	}
	return x, nil
}

// lock begins a report. The next one waits until release.
func (x *exchange) lock(c *call) error {
	if !x.granted.Load() {
		return &Problem{Status: http.StatusConflict, Detail: "it is not the turn of the exchange", Hint: "wait for the reply, or give the exchange back with DELETE"}
	}
	select {
	case x.calls <- struct{}{}:
		x.silent.Stop()
		return nil
	case <-c.r.Context().Done():
		return c.r.Context().Err()
	}
}

// release lets the next report come.
func (x *exchange) release() {
	x.silent.Reset(silentFor)
	<-x.calls
}

// readReport reads what a client says of a send.
func (c *call) readReport() (*report, error) {
	var h report
	if err := c.read(&h); err != nil {
		return nil, err
	}
	texts := 0
	for name, value := range h.Headers {
		texts += len(name) + len(value)
	}
	if texts > maxTexts {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("headers: they have more than %d bytes", maxTexts), Hint: "leave out headers that say nothing of limits"}
	}
	switch h.Ended {
	case "", complete, left, broken:
		return &h, nil
	}
	return nil, &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("ended: %.80q is none of the ways a response ends", h.Ended), Hint: "use complete, left or broken, or leave it out while it goes on"}
}

// answerExchange takes the beginning of a response, or the reason why there is none. The reply says whether to send the request again: then it comes
// when it is the request's turn.
func (a *API) answerExchange(c *call) error {
	h, err := c.readReport()
	if err != nil {
		return err
	}
	if h.Error == "" && (h.Status < 200 || h.Status > 599) {
		return &Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("status: %d is no status of a response", h.Status), Hint: "use 200 to 599; without a response say why in error"}
	}
	x, err := a.found(c)
	if err != nil {
		return err
	}
	if h.Error != "" && h.Ended == left { // also while another report waits for the next turn
		x.end(errLeft) // the provider may still be working on it
		return c.reply(told{})
	}
	if err := x.lock(c); err != nil {
		return err
	}
	defer x.release()
	pipe := x.open(h)
	select {
	case x.heard <- h:
	case <-x.done:
		return &Problem{Status: http.StatusConflict, Detail: "the exchange has its response", Hint: "report the rest of its body to body"}
	}
	x.pipe = pipe
	x.feed(h)
	select {
	case <-x.turns:
		return c.reply(told{SendAgain: true})
	case <-x.done:
	case <-c.r.Context().Done(): // the client does not wait for its next turn
		x.end(errUnsent)
		return c.r.Context().Err()
	}
	if h.Ended != "" || x.err != nil {
		<-x.over
	}
	return c.reply(told{})
}

// told is the reply to the report of a send.
type told struct {
	SendAgain bool `json:"send_again"`
}

// open prepares the body of a response for the transport. It returns where the rest of the body goes; nil if there is none.
func (x *exchange) open(h *report) *io.PipeWriter {
	if h.Error != "" {
		return nil
	}
	if h.Ended == complete {
		h.reader = io.NopCloser(bytes.NewReader(h.Body))
		return nil
	}
	reader, writer := io.Pipe()
	h.reader = reader
	context.AfterFunc(x.ctx, func() { _ = reader.CloseWithError(context.Cause(x.ctx)) })
	return writer
}

// feed passes a piece of the response to the transport, and its end.
func (x *exchange) feed(h *report) {
	if x.pipe == nil {
		return
	}
	_, _ = x.pipe.Write(h.Body) // an error means that the transport reads no more
	switch h.Ended {
	case complete:
		_ = x.pipe.Close()
	case left:
		x.cancel(errLeft)
	case broken:
		_ = x.pipe.CloseWithError(errBroken)
	}
}

// bodyOfExchange takes a piece of a response, and its end.
func (a *API) bodyOfExchange(c *call) error {
	h, err := c.readReport()
	if err != nil {
		return err
	}
	x, err := a.found(c)
	if err != nil {
		return err
	}
	if h.Ended == "" && len(h.Body) == 0 { // a sign of life, also while another report waits for the next turn
		select {
		case x.calls <- struct{}{}:
			if x.granted.Load() {
				x.silent.Reset(silentFor)
			}
			<-x.calls
		default:
		}
		return nil
	}
	if err := x.lock(c); err != nil {
		return err
	}
	defer x.release()
	if x.pipe == nil {
		return &Problem{Status: http.StatusConflict, Detail: "the exchange has no response yet", Hint: "report it to answer, or give the exchange back with DELETE"}
	}
	x.feed(h)
	if h.Ended != "" {
		<-x.over
	}
	return nil
}

// cancelExchange gives back an exchange whose request was not sent, also one that waits for its turn or has not begun.
func (a *API) cancelExchange(c *call) error {
	x, err := a.found(c)
	if err != nil {
		a.sending.giveBack(c.who.Token, c.r.PathValue("id"))
		return err
	}
	x.end(errUnsent)
	return nil
}
