package sluicehttp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxInflated bounds how much of a compressed response is decompressed: a few bytes can expand to very many.
const maxInflated = 64 << 20

// encodingOf returns how a body is compressed; empty if it is not.
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

// unzip decompresses up to most bytes. It reports whether that was all.
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

// unzipped reads a compressed body after its first bytes.
type unzipped struct {
	src  io.Reader
	skip int64
	z    *gzip.Reader
}

// Read implements io.Reader.
func (u *unzipped) Read(b []byte) (int, error) {
	if u.z == nil {
		z, err := gzip.NewReader(u.src)
		if err != nil {
			return 0, err
		}
		if _, err = io.CopyN(io.Discard, z, u.skip); err != nil {
			return 0, err
		}
		u.z = z
	}
	return u.z.Read(b)
}

// pieces reads a decompressed body in pieces.
type pieces interface{ Write(p []byte) }

// inflater decompresses a body that passes by, such as a response for its usage reader. It needs a goroutine, because the decompressor
// reads instead of being written to. The goroutine runs only while write waits for it. It ignores data that it cannot
// decompress.
type inflater struct {
	in   chan []byte   // the next data; closed: no more
	idle chan struct{} // the data has been used up
	over chan struct{} // the goroutine has ended
	rest []byte        // the rest of the data
}

func newInflater(to pieces, most int) *inflater {
	i := &inflater{in: make(chan []byte), idle: make(chan struct{}), over: make(chan struct{})}
	go i.run(to, most)
	return i
}

func (i *inflater) run(to pieces, most int) {
	defer close(i.over)
	src := bufio.NewReader(i)
	z, err := gzip.NewReader(src)
	if err != nil {
		return
	}
	z.Multistream(false) // else the end of a member is held back until the next one begins
	buf := make([]byte, 16<<10)
	for total := 0; total < most; {
		n, err := z.Read(buf)
		to.Write(buf[:n])
		total += n
		if errors.Is(err, io.EOF) {
			if err = z.Reset(src); err == nil {
				z.Multistream(false)
			}
		}
		if err != nil {
			return
		}
	}
}

// Read passes the data on to the decompressor. When that is used up it lets write return, and waits for more.
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

// write decompresses p, which must not be empty. It does not retain p. It returns false if the data is invalid or too
// long.
func (i *inflater) write(p []byte) bool {
	select {
	case i.in <- p:
	case <-i.over:
		return false
	}
	select {
	case <-i.idle:
		return true
	case <-i.over:
		return false
	}
}

// close ends the goroutine. Do not call write afterwards.
func (i *inflater) close() {
	close(i.in)
	<-i.over
}
