package framing

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	head   = "POST /%d HTTP/1.1\r\nHost: localhost\r\n"
	length = "Content-Length: 5\r\n"
	coded  = "Transfer-Encoding: chunked\r\n"
	chunks = "5\r\nhello\r\n0\r\n\r\n"
)

// smuggled is text that looks like a request that must be refused.
const smuggled = "POST /no HTTP/1.1\r\nHost: localhost\r\n" + length + coded + "\r\n" + chunks

func both(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(head, 9) + length + coded + "\r\n" + chunks
}

// A request that has both a Transfer-Encoding and a Content-Length is refused, wherever it is on its connection.
func TestTwoLengthsAreRefused(t *testing.T) {
	sized := fmt.Sprintf(head, 1) + length + "\r\nhello"
	coded1 := fmt.Sprintf(head, 1) + coded + "\r\n" + chunks
	long := fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", fmt.Sprintf(head, 1), len(smuggled), smuggled)
	inChunk := fmt.Sprintf("%s%s\r\n%x;ext=1\r\n%s\r\n0\r\nContent-Length: 5\r\nX: y\r\n\r\n", fmt.Sprintf(head, 1), coded, len(smuggled), smuggled)
	for name, c := range map[string]struct {
		sent string
		want []int
	}{
		"length first":           {both(t), []int{400}},
		"encoding first":         {fmt.Sprintf(head, 1) + coded + length + "\r\n" + chunks, []int{400}},
		"mixed case":             {fmt.Sprintf(head, 1) + "cOnTent-lEngth: 5\r\ntransfer-ENCODING: Chunked\r\n\r\n" + chunks, []int{400}},
		"bare line feeds":        {strings.ReplaceAll(both(t), "\r", ""), []int{400}},
		"far apart":              {fmt.Sprintf(head, 1) + length + strings.Repeat("X-Filler: y\r\n", 2000) + coded + "\r\n" + chunks, []int{400}},
		"twice the same length":  {fmt.Sprintf(head, 1) + length + length + coded + "\r\n" + chunks, []int{400}},
		"length of zero":         {fmt.Sprintf(head, 1) + "Content-Length: 0\r\n" + coded + "\r\n" + chunks, []int{400}},
		"after a sized request":  {sized + both(t), []int{200, 400}},
		"after a chunked one":    {coded1 + both(t), []int{200, 400}},
		"after one with a body":  {long + both(t), []int{200, 400}},
		"after chunks with text": {inChunk + both(t), []int{200, 400}},
		"after a blank line":     {sized + "\r\n" + both(t), []int{200, 400}},
		"after a GET":            {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + both(t), []int{200, 400}},
		"after HTTP/1.0":         {"POST / HTTP/1.0\r\nConnection: keep-alive\r\n" + length + "\r\nhello" + both(t), []int{200, 400}},
		"encoding in HTTP/1.0":   {"POST / HTTP/1.0\r\nConnection: keep-alive\r\n" + coded + "\r\n" + both(t), []int{400}},
		"continued line":         {fmt.Sprintf(head, 1) + "Content-Length:\r\n 5\r\n\r\nhello", []int{400}},
		"half a preface":         {"PRI * HTTP/2.0\r\n\r\n" + both(t), []int{200}},
		"lengths that differ":    {fmt.Sprintf(head, 1) + length + "Content-Length: 6\r\n\r\nhello!", []int{400}},
		"same length twice":      {fmt.Sprintf(head, 1) + length + length + "\r\nhello" + sized, []int{200, 200}},
		"one after the other":    {sized + coded1 + sized, []int{200, 200, 200}},
		"text in a body":         {long + sized, []int{200, 200}},
		"text in chunks":         {inChunk + sized, []int{200, 200}},
		"similar names":          {fmt.Sprintf(head, 1) + coded + "Content-Length-X: 5\r\nX-Content-Length: 5\r\n\r\n" + chunks + sized, []int{200, 200}},
		"long names":             {fmt.Sprintf(head, 1) + length + "Transfer-Encodings: 5\r\n\r\nhello" + sized, []int{200, 200}},
	} {
		for _, split := range []bool{false, true} {
			if split && len(c.sent) > 3000 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", name, split), func(t *testing.T) {
				t.Parallel()
				s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil || r.URL.Path == "/no" || r.URL.Path == "/9" {
						t.Errorf("served %s: %v", r.URL, err)
					}
				}))
				s.Listener = Listen(s.Listener)
				s.Start()
				defer s.Close()
				conn, err := net.Dial("tcp", s.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				speak(t, conn, c.sent, split, c.want)
			})
		}
	}
}

// speak sends text at once, or byte by byte, and wants answers.
func speak(t *testing.T, conn net.Conn, text string, split bool, want []int) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	go func() {
		step := len(text)
		if split {
			step = 1
		}
		for part := range slices.Chunk([]byte(text), step) {
			if _, err := conn.Write(part); err != nil {
				return // the server has refused, and closed
			}
		}
	}()
	r := bufio.NewReader(conn)
	for i, status := range want {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != status {
			t.Errorf("answer %d: %d, want %d", i, resp.StatusCode, status)
		}
		if status == 400 && !resp.Close {
			t.Errorf("answer %d leaves the connection open", i)
		}
	}
}

// A second request is refused too if it comes after the first was answered.
func TestTwoLengthsAreRefusedLater(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Listener = Listen(s.Listener)
	s.Start()
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	speak(t, conn, fmt.Sprintf(head, 1)+coded+"\r\n"+chunks, false, []int{200})
	speak(t, conn, both(t), false, []int{400})
}

// Encrypted connections refuse too, HTTP/2 works with and without encryption, and handlers see the state of TLS.
func TestEncryptedConnections(t *testing.T) {
	var seen = make(chan string, 8)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprint(r.Proto, r.TLS != nil && r.TLS.HandshakeComplete)
	}))
	s.EnableHTTP2 = true
	s.StartTLS() // for its certificate
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: s.Config.Handler, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(ListenTLS(tls.NewListener(l, s.TLS), time.Minute)) }()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- server.Serve(Listen(open)) }()
	defer func() {
		_ = server.Close()
		<-ended
		<-ended
	}()
	idle, err := net.Dial("tcp", l.Addr().String()) // it never shakes hands: it holds up neither the others nor the end
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()

	trust := s.Client().Transport.(*http.Transport).TLSClientConfig
	for want, url := range map[string]string{"HTTP/1.1true": "https://" + l.Addr().String(), "HTTP/2.0true": "https://" + l.Addr().String(), "HTTP/2.0false": "http://" + open.Addr().String()} {
		var p http.Protocols
		p.SetHTTP1(want == "HTTP/1.1true")
		p.SetHTTP2(want == "HTTP/2.0true")
		p.SetUnencryptedHTTP2(want == "HTTP/2.0false")
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust.RootCAs}, Protocols: &p}
		resp, err := (&http.Client{Transport: tr, Timeout: 20 * time.Second}).Post(url, "text/plain", strings.NewReader(smuggled))
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		_ = resp.Body.Close()
		if got := <-seen; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		tr.CloseIdleConnections()
	}
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: trust.RootCAs})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	speak(t, conn, both(t), false, []int{400})
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	speak(t, plain, both(t), false, []int{400})
}

var (
	hasLength = regexp.MustCompile(`(?i)\ncontent-length:`)
	hasCoding = regexp.MustCompile(`(?i)\ntransfer-encoding:`)
)

// parsed parses what the scanner lets through as net/http does. It returns how many requests it has parsed, and the
// head of one that has both fields.
func parsed(stream []byte, splits func() int) (n int, bad string) {
	spoiled := bytes.Clone(stream)
	var s scanner
	for rest := spoiled; len(rest) > 0; {
		k := min(splits(), len(rest))
		s.scan(rest[:k])
		rest = rest[k:]
	}
	under := bytes.NewReader(spoiled)
	r := bufio.NewReader(under)
	at := func() int { return len(stream) - under.Len() - r.Buffered() }
	for {
		begin := at()
		q, err := http.ReadRequest(r)
		if err != nil {
			return n, ""
		}
		if h := stream[begin:at()]; hasLength.Match(h) && hasCoding.Match(h) {
			return n, string(h)
		}
		n++
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return n, ""
		}
	}
}

// For any input, net/http parses no head with both fields that the scanner has let pass.
func TestNoStreamGetsPastTheScanner(t *testing.T) {
	pieces := []string{
		"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\n", "POST / HTTP/1.0\r\n", "Host: a\r\n", length, coded, "Content-Length: 0\r\n", "\r\n", "\r\n", "\n", "\r",
		"hello", "5\r\nhello\r\n", "0\r\n", "0\r\n\r\n", "5;x=\"\r\n", "5 \r\n", "a: b\r\n", " ", "\t", ":", ",", "0", "transfer-encoding:chunked\n", "content-length:5\r\n", smuggled, "PRI * HTTP/2.0\r\n\r\nSM\r\n", "\x00",
		fmt.Sprintf(head, 1) + length + "\r\nhello", fmt.Sprintf(head, 1) + coded + "\r\n" + chunks,
	}
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	served := 0
	for range 50_000 {
		var stream []byte
		for range 1 + rnd.IntN(12) {
			stream = append(stream, pieces[rnd.IntN(len(pieces))]...)
		}
		n, bad := parsed(stream, func() int { return 1 + rnd.IntN(40) })
		if bad != "" {
			t.Fatalf("seed %d: %q has parsed %q", seed, stream, bad)
		}
		served += n
	}
	if served < 3000 {
		t.Errorf("only %d requests were parsed", served)
	}
}

func BenchmarkScan(b *testing.B) {
	text := []byte("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-Stainless-Header: some value of it\r\n", 12) + "Content-Length: 4000\r\n\r\n" + strings.Repeat("x", 4000))
	var s scanner
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.scan(text)
	}
	if s.state != beforeRequest {
		b.Error("the request was not followed")
	}
}
