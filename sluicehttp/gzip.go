package sluicehttp

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/sluicehq/sluice/provider"
)

// maxInflated is how much of a compressed answer is looked at. A few bytes can stand for very many.
const maxInflated = 64 << 20

// encodingOf is how a body is compressed; empty if it is not.
func encodingOf(h http.Header) string {
	switch e := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ","))); e {
	case "identity":
		return ""
	case "x-gzip":
		return "gzip"
	default:
		return e
	}
}

func gzipped(h http.Header) bool { return len(h["Content-Encoding"]) > 0 && encodingOf(h) == "gzip" }

// unzip decompresses up to most bytes, to look at them. It reports whether that was all.
func unzip(packed []byte, most int64) (plain []byte, whole bool) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, false
	}
	plain, err = io.ReadAll(io.LimitReader(z, most+1))
	if int64(len(plain)) > most {
		return plain[:most], false
	}
	return plain, err == nil
}

// inflater decompresses an answer that passes by, for the one who reads its usage. Decompressing takes a goroutine,
// because it is done by reading and not by writing. It has its turn while write waits for it, and never waits
// for anything else; what it cannot make sense of it lets pass.
type inflater struct {
	in   chan []byte   // what is next; closed: nothing
	idle chan struct{} // what was given has been used up
	over chan struct{} // it reads no more
	rest []byte        // of what was given
}

func newInflater(to provider.UsageReader, most int) *inflater {
	i := &inflater{in: make(chan []byte), idle: make(chan struct{}), over: make(chan struct{})}
	go i.run(to, most)
	return i
}

func (i *inflater) run(to provider.UsageReader, most int) {
	defer close(i.over)
	z, err := gzip.NewReader(i)
	if err != nil {
		return
	}
	buf := make([]byte, 16<<10)
	for total := 0; total < most; {
		n, err := z.Read(buf)
		to.Write(buf[:n])
		if total += n; err != nil {
			return
		}
	}
}

// Read gives the decompressor what has come. When that is used up it lets write go, and waits for the next.
func (i *inflater) Read(p []byte) (int, error) {
	if len(i.rest) == 0 {
		if i.rest != nil {
			i.rest = nil
			i.idle <- struct{}{}
		}
		next, ok := <-i.in
		if !ok {
			return 0, io.ErrUnexpectedEOF
		}
		i.rest = next
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

// write decompresses what has come. p is not empty, and is not kept.
func (i *inflater) write(p []byte) {
	select {
	case i.in <- p:
	case <-i.over:
		return
	}
	select {
	case <-i.idle:
	case <-i.over:
	}
}

// close ends it. Nothing must be written any more.
func (i *inflater) close() {
	close(i.in)
	<-i.over
}
