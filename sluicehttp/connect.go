package sluicehttp

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

var errOneWay = errors.New("sluicehttp: the transport cannot write to a connection that was upgraded")

// holds returns what the request takes from limits. Opening a connection takes concurrency; calls over it take all
// else.
func (f *flight) holds() sluice.Holds {
	switch {
	case f.line.Opens():
		return sluice.HoldsPlace
	case f.line.Sends():
		return sluice.HoldsNoPlace
	}
	return sluice.HoldsAll
}

// connect returns the connection that the request has opened. Its ticket lives as long as the connection.
func (f *flight) connect(a *attempt, o *outcome) {
	f.line.Key = f.ask.Key
	f.told.Status, f.told.UpstreamID, f.told.Took = o.resp.StatusCode, upstreamID(o.resp.Header), time.Since(a.began)
	c := &connection{ticket: a.end(), cancel: a.cancel}
	if c.conn, _ = o.resp.Body.(io.ReadWriteCloser); c.conn == nil {
		c.conn = oneWay{o.resp.Body}
	}
	if c.ticket.ID() != "" {
		c.mu.Lock()
		c.timer = time.AfterFunc(keepEvery, c.keep)
		c.mu.Unlock()
	}
	o.resp.Body = c
	f.over()
}

// connection is an upgraded connection.
type connection struct {
	conn   io.ReadWriteCloser
	ticket sluice.Ticket
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer // nil: no ticket
	closed bool
}

func (c *connection) Read(p []byte) (int, error)  { return c.conn.Read(p) }
func (c *connection) Write(p []byte) (int, error) { return c.conn.Write(p) }

// keep extends the ticket.
func (c *connection) keep() {
	_ = c.ticket.Keep(context.Background(), keepFor) // if that fails, the ticket expires by itself
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.timer.Reset(keepEvery)
	}
}

// Close ends the connection and its ticket.
func (c *connection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.conn.Close()
	c.cancel(nil)
	if c.timer != nil {
		c.timer.Stop()
		_ = c.ticket.Close() // if the store cannot be reached, the ticket expires by itself
	}
	return err
}

// oneWay is a body that cannot be written to.
type oneWay struct{ io.ReadCloser }

func (oneWay) Write([]byte) (int, error) { return 0, errOneWay }
