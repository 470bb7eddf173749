package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	callWithin = 30 * time.Second // timeout of a call
	maxAnswer  = 256 << 20
	// idleFor is how long after a call a connection is reused. The daemon closes idle connections only later.
	idleFor = 30 * time.Second
)

// wire is one HTTP connection that stays open. It uses no goroutine and one write for each request, so the driver
// leaves the processor to the daemon.
type wire struct {
	address string
	conn    net.Conn
	in      *bufio.Reader
	out     []byte
	used    time.Time
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
		w.conn = nil
	}
}

// bad is a response with an unexpected status.
type bad struct{ status int }

func (b bad) Error() string { return strconv.Itoa(b.status) }

// call sends a request and decodes the response into v, unless v is nil. It does not retry a call whose connection
// broke, because the daemon may have counted it.
func (w *wire) call(ctx context.Context, method, path string, body []byte, v any) error {
	err := w.exchange(ctx, method, path, body, v)
	var b bad
	if err != nil && !errors.As(err, &b) {
		w.close()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// text returns the body at a path of the daemon.
func (w *wire) text(ctx context.Context, path string) (said string, err error) {
	err = w.call(ctx, "GET", path, nil, &said)
	return said, err
}

func (w *wire) exchange(ctx context.Context, method, path string, body []byte, v any) error {
	if time.Since(w.used) > idleFor {
		w.close()
	}
	if w.conn == nil {
		d := net.Dialer{Timeout: callWithin}
		c, err := d.DialContext(ctx, "tcp", w.address)
		if err != nil {
			return errors.New("no connection")
		}
		w.conn, w.in = c, bufio.NewReaderSize(c, 16<<10)
	}
	conn := w.conn
	if err := conn.SetDeadline(time.Now().Add(callWithin)); err != nil {
		return errors.New("connection lost")
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // ends pending reads and writes
	w.out = fmt.Appendf(w.out[:0], "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, w.address, len(body), body)
	if _, err := conn.Write(w.out); err != nil {
		return errors.New("connection lost")
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		return errors.New("no answer")
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	_ = resp.Body.Close()
	w.used = time.Now()
	if err != nil || resp.Close {
		w.close()
	}
	switch {
	case err != nil:
		return errors.New("no answer")
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent:
		return bad{resp.StatusCode}
	case v != nil:
		if raw, ok := v.(*string); ok {
			*raw = string(text)
			return nil
		}
		if err := json.Unmarshal(text, v); err != nil {
			return errors.New("no JSON")
		}
	}
	return nil
}
