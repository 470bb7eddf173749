package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rig is a server that counts its connections, and a transport.
type rig struct {
	*Transport
	url   string
	conns atomic.Int64
	dials atomic.Int64
}

func newRig(t *testing.T, h http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{}
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	r.url = s.URL
	r.dialing(t)
	return r
}

func (r *rig) dialing(t *testing.T) {
	var dialer net.Dialer
	r.Transport = New(&http.Transport{
		DisableCompression: true, MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			r.dials.Add(1)
			return dialer.DialContext(ctx, network, address)
		},
	})
	t.Cleanup(r.CloseIdleConnections)
}

// raw is a server that answers each request on a connection with the next of some texts, and closes it after the last.
func raw(t *testing.T, answers ...string) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := &rig{url: "http://" + l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.conns.Add(1)
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for _, answer := range answers {
					q, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, q.Body)
					_, _ = io.WriteString(c, answer)
				}
			}()
		}
	}()
	r.dialing(t)
	return r
}

func request(ctx context.Context, t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	q, err := http.NewRequestWithContext(ctx, method, url, from)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (r *rig) get(t *testing.T, method, body string) (*http.Response, string) {
	t.Helper()
	resp, err := r.RoundTrip(request(t.Context(), t, method, r.url, body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Seen", r.Method+" "+r.URL.RequestURI()+" "+r.Host+" "+r.Header.Get("User-Agent"))
	_, _ = w.Write(body)
}

func TestRequestsAreAsThroughNetHTTP(t *testing.T) {
	r := newRig(t, echo)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, body := range []string{"", "x", strings.Repeat("long ", 10_000), strings.Repeat("longer ", 20_000)} {
			q := request(t.Context(), t, method, r.url+"/a%2Fb?c=%20d", body)
			q.Header.Set("X-Some", "thing")
			got, err := r.RoundTrip(q)
			if err != nil {
				t.Fatal(err)
			}
			want, err := r.Base().RoundTrip(request(t.Context(), t, method, r.url+"/a%2Fb?c=%20d", body))
			if err != nil {
				t.Fatal(err)
			}
			a, _ := io.ReadAll(got.Body)
			b, _ := io.ReadAll(want.Body)
			if !bytes.Equal(a, b) || got.Header.Get("X-Seen") != want.Header.Get("X-Seen") || got.ContentLength != want.ContentLength ||
				got.StatusCode != want.StatusCode || got.Proto != want.Proto {
				t.Errorf("%s with %d bytes: %v and %d bytes, want %v and %d bytes", method, len(body), got.Header, len(a), want.Header, len(b))
			}
			_, _ = got.Body.Close(), want.Body.Close()
		}
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.Method {
		case "PUT":
			w.WriteHeader(http.StatusNoContent)
		case "POST": // in chunks, with a trailer
			w.Header().Set("Trailer", "X-End")
			_, _ = io.WriteString(w, "one")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "two")
			w.Header().Set("X-End", "yes")
		default:
			_, _ = io.WriteString(w, "answer")
		}
	})
	for range 10 {
		if _, text := r.get(t, "GET", ""); text != "answer" {
			t.Errorf("GET: %q", text)
		}
		if resp, text := r.get(t, "POST", "body"); text != "onetwo" || resp.Trailer.Get("X-End") != "yes" {
			t.Errorf("POST: %q, trailer %v", text, resp.Trailer)
		}
		r.get(t, "HEAD", "")
		r.get(t, "PUT", "body")
	}
	if n := r.conns.Load(); n != 1 {
		t.Errorf("%d connections for requests one after the other", n)
	}
}

func TestAnAnswerThatIsNotReadCostsItsConnection(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	for range 3 {
		resp, err := r.RoundTrip(request(t.Context(), t, "GET", r.url, ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a closed body can be read")
		}
	}
	if n := r.conns.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// The server closes idle connections: no request may be lost, and none may be sent twice.
func TestAConnectionThatTheServerClosedIsNotUsed(t *testing.T) {
	r := raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	for range 20 {
		if _, text := r.get(t, "POST", "body"); text != "ok" {
			t.Fatal(text)
		}
		for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) { // until the end has come
			r.mu.Lock()
			list := r.idle[strings.TrimPrefix(r.url, "http://")]
			closed := len(list) == 0 || !list[0].alive()
			r.mu.Unlock()
			if closed {
				break
			}
		}
	}
	if n := r.conns.Load(); n != 20 {
		t.Errorf("%d connections, want 20", n)
	}
}

// A request that the server may have seen is sent again only if that does no harm.
func TestOnlyHarmlessRequestsAreSentAgain(t *testing.T) {
	for method, want := range map[string]bool{"GET": true, "POST": false} {
		var served atomic.Int64
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			if served.Add(1) == 2 {
				panic(http.ErrAbortHandler) // the connection ends without an answer
			}
			_, _ = io.WriteString(w, "ok")
		})
		r.get(t, "GET", "")
		body := ""
		if method == "POST" {
			body = "x"
		}
		resp, err := r.RoundTrip(request(t.Context(), t, method, r.url, body))
		if (err == nil) != want {
			t.Errorf("%s: %v", method, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		if n := served.Load(); n != 2 && !want || n != 3 && want {
			t.Errorf("%s: served %d times", method, n)
		}
	}
}

func TestInformationalAnswersAreSkipped(t *testing.T) {
	early := "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
	r := raw(t, early+early+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	if resp, text := r.get(t, "GET", ""); resp.StatusCode != 200 || text != "ok" {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
	r = raw(t, strings.Repeat(early, maxEarly+1)+"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	if _, err := r.RoundTrip(request(t.Context(), t, "GET", r.url, "")); !errors.Is(err, errEarly) {
		t.Errorf("%v", err)
	}
}

func TestBadAnswersAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"a header that never ends": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 100),
		"no HTTP":                  "SSH-2.0-OpenSSH\r\n",
		"nothing":                  "",
	} {
		r := raw(t, answer)
		if resp, err := r.RoundTrip(request(t.Context(), t, "POST", r.url, "x")); err == nil {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
	r := raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
	resp, err := r.RoundTrip(request(t.Context(), t, "GET", r.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || string(text) != "short" {
		t.Errorf("%q, %v", text, err)
	}
}

// What follows an answer without being asked for is not taken for the next one.
func TestNothingIsReadThatNobodyAskedFor(t *testing.T) {
	r := raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
	for range 3 {
		if _, text := r.get(t, "GET", ""); text != "ok" {
			t.Errorf("%q", text)
		}
	}
	if n := r.conns.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

func TestCancelling(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	why := errors.New("why")
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-q.Context().Done():
		}
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if _, err := r.RoundTrip(request(ctx, t, "POST", r.url, "x")); !errors.Is(err, why) {
		t.Errorf("before the answer: %v", err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	resp, err := r.RoundTrip(request(ctx, t, "GET", r.url+"/body", ""))
	if err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, why) {
		t.Errorf("within the answer: %v", err)
	}
	_ = resp.Body.Close()
	if _, err := r.RoundTrip(request(ctx, t, "GET", r.url, "")); !errors.Is(err, why) {
		t.Errorf("from the beginning: %v", err)
	}
	if r.kept != 0 {
		t.Errorf("%d connections are kept", r.kept)
	}
}

// Close ends a Read that waits.
func TestCloseWhileReading(t *testing.T) {
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	})
	resp, err := r.RoundTrip(request(t.Context(), t, "GET", r.url, ""))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = resp.Body.Close() })
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("an answer that was broken off looks whole")
	}
}

func TestTraces(t *testing.T) {
	r := newRig(t, echo)
	var told []string
	trace := &httptrace.ClientTrace{
		GetConn:      func(string) { told = append(told, "get") },
		GotConn:      func(i httptrace.GotConnInfo) { told = append(told, fmt.Sprint("got ", i.Reused)) },
		WroteHeaders: func() { told = append(told, "wrote") },
	}
	for range 2 {
		resp, err := r.RoundTrip(request(httptrace.WithClientTrace(t.Context(), trace), t, "POST", r.url, "x"))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if got := strings.Join(told, ", "); got != "get, got false, wrote, got true, wrote" {
		t.Error(got)
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	r := newRig(t, echo)
	r.get(t, "POST", "x")
	r.mu.Lock()
	for _, list := range r.idle {
		list[0].since = time.Now().Add(-time.Hour)
	}
	r.mu.Unlock()
	r.sweep()
	if r.kept != 0 || len(r.idle) != 0 {
		t.Errorf("%d connections are kept", r.kept)
	}
	r.get(t, "POST", "x")
	r.sweep()
	if r.kept != 1 {
		t.Errorf("%d connections are kept, want 1", r.kept)
	}
	r.CloseIdleConnections()
	if r.kept != 0 {
		t.Errorf("%d connections are kept after all were closed", r.kept)
	}
}

func TestManyAtOnce(t *testing.T) {
	r := newRig(t, echo)
	done := make(chan error)
	for i := range 16 {
		go func() {
			for k := range 50 {
				want := fmt.Sprint(i, " ", k)
				q, _ := http.NewRequest(http.MethodPost, r.url, strings.NewReader(want))
				resp, err := r.RoundTrip(q)
				if err != nil {
					done <- err
					return
				}
				text, err := io.ReadAll(resp.Body)
				if string(text) != want || err != nil {
					done <- fmt.Errorf("%q instead of %q: %w", text, want, err)
					return
				}
				_ = resp.Body.Close()
			}
			done <- nil
		}()
	}
	for range 16 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := r.dials.Load(); n > 16 {
		t.Errorf("%d connections for 16 at once", n)
	}
}
