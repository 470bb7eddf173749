package proxy

import (
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/sluicehttp"
)

// hopByHop lists headers that concern one connection, and not the request or response.
var hopByHop = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// copyHeader copies the headers that are passed on. Values are shared, because no code changes them in place.
func copyHeader(to, from http.Header, drop func(name string) bool) {
	named := from["Connection"]
	for name, values := range from {
		if hopByHop[name] || drop != nil && drop(name) || len(named) > 0 && isNamed(named, name) {
			continue
		}
		to[name] = values
	}
}

// isNamed reports whether the Connection header names a header as its own.
func isNamed(connection []string, name string) bool {
	for _, v := range connection {
		for part := range strings.SplitSeq(v, ",") {
			if textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(part)) == name {
				return true
			}
		}
	}
	return false
}

// poses reports whether a response header would make a provider look like the gate. Another gate may be the upstream on
// this machine, or behind a proxy: its refusals are passed on as such.
func (d *door) poses(name string) bool {
	return strings.HasPrefix(name, headerPrefix) && name != sluicehttp.HeaderModel && !d.near && !d.proxy.behind
}

// passBack streams a response to the client. If the response is cut off, it cuts off the client's too, so that it does
// not look complete.
func (d *door) passBack(w http.ResponseWriter, id string, resp *http.Response) {
	defer func() { _ = resp.Body.Close() }() // the error has no receiver
	if resp.StatusCode < 100 {               // net/http reads such a status, but does not write it
		d.proxy.answer(w, id, d, refuse(http.StatusBadGateway, "the provider answered with status "+strconv.Itoa(resp.StatusCode)+", which HTTP does not have", "check whether the upstream is an HTTP API"))
		return
	}
	h := w.Header()
	copyHeader(h, resp.Header, d.poses)
	for name := range resp.Trailer {
		if !d.poses(name) {
			h.Add("Trailer", name)
		}
	}
	announced := len(resp.Trailer)
	w.WriteHeader(resp.StatusCode)
	flush := func() {}
	if resp.ContentLength < 0 { // a stream: send each piece at once
		if f, ok := w.(http.Flusher); ok {
			flush = f.Flush
			flush()
		}
	}
	if !copyBody(w, resp.Body, flush) {
		panic(http.ErrAbortHandler)
	}
	if len(resp.Trailer) == 0 {
		return
	}
	flush() // trailers come after the body
	prefix := ""
	if len(resp.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		if !d.poses(name) {
			h[prefix+name] = values
		}
	}
}

// copyBody copies a body. It returns false if the response was cut off. If the client is gone it returns true: closing
// the body handles that.
func copyBody(w io.Writer, body io.Reader, flush func()) bool {
	p := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(p)
	for {
		n, err := body.Read(p[:])
		if n > 0 {
			if _, failed := w.Write(p[:n]); failed != nil {
				return true
			}
			flush()
		}
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// buffers holds buffers for copying bodies.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

const bufferSize = 32 << 10
