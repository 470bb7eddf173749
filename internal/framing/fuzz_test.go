package framing

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzScanner sends any bytes over a connection. The scanner decides the same however they are split, and wherever net/http
// ends a request that both accept, the scanner is between two requests.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n" + length + "\r\nhelloGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\n" + coded + "\r\n" + chunks + "GET / HTTP/1.1\r\nHost: a\r\n\r\n", smuggled, preface + "anything",
		"POST / HTTP/1.0\r\n" + coded + "\r\n" + chunks, "POST / HTTP/1.1\nHost: a\nContent-Length:  3\n\nabc",
		"POST / HTTP/1.1\r\nHost: a\r\n" + coded + "\r\n5;x=\"y\"\r\nhello\r\n0\r\nA: b\r\n\r\n", "\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n" + smuggled, "POST / HTTP/1.1\r\nHost: a\r\n" + coded + "\r\nffffffffffffffff\r\nhello",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, split := bytes.Clone(text), bytes.Clone(text)
		var one, many scanner
		one.scan(whole)
		for i := range split {
			many.scan(split[i : i+1])
		}
		if !bytes.Equal(whole, split) {
			t.Fatalf("%q becomes %q, and byte by byte %q", text, whole, split)
		}
		if strings.HasPrefix(string(text), "PRI ") {
			return // HTTP/2
		}
		in := bytes.NewReader(whole)
		r := bufio.NewReader(in)
		for {
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, q.Body); err != nil {
				return
			}
			end := len(whole) - in.Len() - r.Buffered()
			var s scanner
			s.scan(bytes.Clone(text[:end]))
			if s.state != beforeRequest {
				t.Fatalf("%q: net/http ends a request after %q, the scanner is in state %d", text, text[:end], s.state)
			}
			if len(q.TransferEncoding) > 0 && q.Header.Get("Content-Length") != "" {
				t.Fatalf("%q has two lengths", text[:end])
			}
		}
	})
}
