package proxy

import (
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"sync"
)

// hopByHop are headers that are about one connection, and not about the request or the answer.
var hopByHop = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// copyHeader copies what goes on. Values are shared: nobody changes them in place.
func copyHeader(to, from http.Header, drop func(name string) bool) {
	named := from["Connection"]
	for name, values := range from {
		if hopByHop[name] || drop != nil && drop(name) || len(named) > 0 && isNamed(named, name) {
			continue
		}
		to[name] = values
	}
}

// isNamed reports that a header is named as one of the connection's.
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

// passBack sends an answer to the client as it comes. One that is cut off is cut off for the client too: it must
// not look whole.
func passBack(w http.ResponseWriter, resp *http.Response) {
	defer func() { _ = resp.Body.Close() }() // nobody could be told
	h := w.Header()
	copyHeader(h, resp.Header, nil)
	for name := range resp.Trailer {
		h.Add("Trailer", name)
	}
	announced := len(resp.Trailer)
	w.WriteHeader(resp.StatusCode)
	flush := func() {}
	if resp.ContentLength < 0 { // its pieces count
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
	flush() // what comes is behind the body
	prefix := ""
	if len(resp.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		h[prefix+name] = values
	}
}

// copyBody reports false if the answer broke off. That the client is gone is no fault: closing the body tells.
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

// buffers are for copying bodies.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

const bufferSize = 32 << 10
