package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// zipFrom is the size in bytes from which an answer is compressed. The answers of tickets are smaller: to compress them
// would cost time and save no packet.
const zipFrom = 1 << 10

var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return z
}}

// send writes a body, compressed if the client accepts gzip and it is worth it.
func send(w http.ResponseWriter, r *http.Request, body []byte) error {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= zipFrom && acceptsGzip(r.Header["Accept-Encoding"]) {
		var small bytes.Buffer
		z := zippers.Get().(*gzip.Writer)
		defer zippers.Put(z)
		z.Reset(&small)
		_, err := z.Write(body)
		if end := z.Close(); err == nil && end == nil {
			h.Set("Content-Encoding", "gzip")
			body = small.Bytes()
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, err := w.Write(body)
	return err
}

// acceptsGzip reads the header Accept-Encoding. A quality of 0 refuses.
func acceptsGzip(values []string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			name, quality, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q, stated := strings.CutPrefix(strings.TrimSpace(quality), "q=")
				n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
				return !stated || err == nil && n > 0
			}
		}
	}
	return false
}
