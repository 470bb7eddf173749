package sluicehttp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

func TestOrdinaryClient(t *testing.T) {
	limits := []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 5000, Window: hour}, {Name: "places", Kind: sluice.Concurrency, Size: 2}}
	x := newRig(t, limits...)
	x.Dialect, x.Caller = nil, Caller{Agent: "a", User: "u", Class: sluice.P1}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Sluice-Retry") != "" {
			t.Error("the gate's own header was passed on")
		}
		w.Header().Set("X-RateLimit-Limit", "5000")
		w.Header().Set("X-RateLimit-Remaining", "1000")
		w.Header().Set("X-RateLimit-Reset", "1800")
		fmt.Fprint(w, "hello")
	})
	client := &http.Client{Transport: x}
	for range 3 {
		resp, err := client.Get(url + "/x")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil || string(text) != "hello" || resp.Request.URL.Path != "/x" {
			t.Fatalf("%q, %v", text, err)
		}
		resp.Body.Close()
	}
	x.wantQuiet(t)
	if s := x.status(t); s.Sent != 3 || x.used(t, "hour") < 4000 {
		t.Errorf("sent %d, used %d; what the answers state was not taken in", s.Sent, x.used(t, "hour"))
	}
	if e := x.told.list[0]; len(x.told.list) != 3 || e.Status != 200 || e.Verdict != store.VerdictOK || e.Agent != "a" || e.User != "u" ||
		e.Class != sluice.P1 || e.Resource != "api" || e.Ticket == "" || e.Attempts != 1 || e.Err != nil || e.Aborted {
		t.Errorf("told of %+v", x.told.list)
	}
}

// A body arrives as it was sent, whatever its length and whether or not that is known.
func TestBodyArrivesAsItIs(t *testing.T) {
	x := newRig(t)
	var got []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		fmt.Fprint(w, r.ContentLength)
	})
	for _, n := range []int{0, 1, 5000, provider.MaxCall - 1, provider.MaxCall, provider.MaxCall + 1, provider.MaxCall + 100_000} {
		sent := bytes.Repeat([]byte("0123456789abcdef~"), n/17+1)[:n]
		for _, known := range []bool{true, false} {
			var body io.Reader = bytes.NewReader(sent)
			if !known {
				body = io.MultiReader(body) // so that nothing can tell its length
			}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
			_, length := x.do(t, r)
			if !bytes.Equal(got, sent) {
				t.Errorf("%d bytes, known %v: %d arrived", n, known, len(got))
			}
			if want := fmt.Sprint(n); known && length != want || !known && n > 0 && length != "-1" {
				t.Errorf("%d bytes, known %v: the length was said to be %s", n, known, length)
			}
		}
	}
	x.wantQuiet(t)
}

func TestBodyThatDoesNotKeepItsWord(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("it was sent") })
	for _, n := range []int64{3, 9} {
		r := post(t, url, "")
		r.Body, r.GetBody, r.ContentLength = io.NopCloser(strings.NewReader("123456")), nil, n
		if _, err := x.RoundTrip(r); err == nil || !strings.Contains(err.Error(), "body") {
			t.Errorf("a body of 6 with length %d: %v", n, err)
		}
	}
	if x.status(t).Sent != 0 {
		t.Error("it was charged")
	}
}

func TestCompressedCallIsReadAndSentAsItIs(t *testing.T) {
	x := newRig(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"model":"m","max":77,"special":5}`)
	z.Close()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		if !bytes.Equal(got, packed.Bytes()) || r.Header.Get("Content-Encoding") != "gzip" {
			t.Error("it arrived otherwise")
		}
	})
	r := post(t, url, packed.String())
	r.Header.Set("Content-Encoding", "gzip")
	x.do(t, r)
	x.wantCharged(t, map[string]int64{"special": 5})
	if e := x.told.one(t); e.Model != "m" || e.Estimated.Output != 77 {
		t.Errorf("it was not read: %+v", e)
	}
}

func TestTheCallerIsMadeUpOfAllThatIsSaid(t *testing.T) {
	x := newRig(t)
	x.Caller = Caller{Agent: "base", Class: sluice.P0, User: "u"}
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	r := get(t, url)
	r = r.WithContext(WithCaller(r.Context(), Caller{Agent: "own", Tool: "hammer", Emergency: true}))
	r.Header.Set("X-Stainless-Retry-Count", "1")
	x.do(t, r)
	if e := x.told.one(t); e.Agent != "own" || e.Class != sluice.P0 || e.User != "u" || e.Tool != "hammer" || !e.Retry {
		t.Errorf("told of %+v", e)
	}
	if s := x.status(t); s.Retried != 1 {
		t.Errorf("retried %d", s.Retried)
	}
	x.Caller, x.told.list = Caller{}, nil
	x.do(t, get(t, url))
	if e := x.told.one(t); e.Agent == "" {
		t.Error("nobody sent it")
	}
	for value, want := range map[string]bool{"0": false, "2": true, "": false, "true": true, "x": false, "-1": false} {
		if h := (http.Header{headerRetry: {value}}); retried(h) != want {
			t.Errorf("%q is a retry: %v", value, !want)
		}
	}
}

func TestUpgradeIsRefused(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	r := get(t, url)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	if _, err := x.RoundTrip(r); !errors.Is(err, ErrUpgrade) {
		t.Errorf("the error is %v", err)
	}
	if x.status(t).Sent != 0 || !errors.Is(x.told.one(t).Err, ErrUpgrade) {
		t.Error("it was charged, or nobody was told")
	}
}

func TestTransportWithoutAGate(t *testing.T) {
	if _, err := (&Transport{}).RoundTrip(get(t, "http://host/")); err == nil || !strings.Contains(err.Error(), "Transport.Gate") {
		t.Errorf("the error is %v", err)
	}
	x := newRig(t)
	x.Resource = "unheard-of"
	if _, err := x.RoundTrip(get(t, "http://host/")); !errors.Is(err, sluice.ErrUnknownResource) {
		t.Errorf("the error is %v", err)
	}
}

func TestTrailersAndInterimAnswersPass(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Trailer.Get("Sum") != "42" {
			t.Errorf("the request's trailers are %v", r.Trailer)
		}
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Trailer", "Total")
		fmt.Fprint(w, "text")
		w.Header().Set("Total", "7")
	})
	hints := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		hints += code
		return nil
	}})
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, io.MultiReader(strings.NewReader("body")))
	r.Trailer = http.Header{"Sum": {"42"}}
	resp, text := x.do(t, r)
	if text != "text" || hints != 103 || resp.Trailer.Get("Total") != "7" {
		t.Errorf("%q, interim answers %d, trailers %v", text, hints, resp.Trailer)
	}
}

func TestHTTP2(t *testing.T) {
	x := newRig(t)
	stop := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"text\":\"hello world, hello\"}\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-stop:
			}
			return
		}
		fmt.Fprintf(w, `{"proto":%d,"usage":{"in":10,"out":20}}`, r.ProtoMajor)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { close(stop); server.Close() })
	base := server.Client().Transport.(*http.Transport)
	x.Base, x.Abort = base, true
	_, text := x.do(t, post(t, server.URL, `{"model":"m"}`))
	if !strings.Contains(text, `"proto":2`) {
		t.Fatalf("the answer is %s", text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := x.RoundTrip(post(t, server.URL+"/slow", `{"model":"m","stream":true}`).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}
	resp.Body.Close()
	x.wantQuiet(t)
	if e := x.told.list[1]; !e.Aborted || x.told.list[0].Usage.Output != 20 {
		t.Errorf("told of %+v", x.told.list)
	}
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: 1})
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "x") })
		x.Caller.Wait = 7 * time.Second
		held, err := x.Gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "other"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = x.RoundTrip(get(t, "http://host/"))
		var e *sluice.Error
		if !errors.As(err, &e) || !errors.Is(err, sluice.ErrDeadline) || !strings.Contains(err.Error(), "7s") {
			t.Errorf("the error is %v", err)
		}
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("it took %v", took)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		x.do(t, get(t, "http://host/"))
		x.wantQuiet(t)
		if s := x.status(t); s.Sent != 2 {
			t.Errorf("sent %d, want the other one and one of ours", s.Sent)
		}
	})
}

func TestLeavingWhileWaitingChargesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t, sluice.Limit{Name: "places", Kind: sluice.Concurrency, Size: 1})
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) { t.Error("it was sent") })
		held, err := x.Gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "other"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = x.RoundTrip(get(t, "http://host/").WithContext(ctx))
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, sluice.ErrDeadline) {
			t.Errorf("the error is %v", err)
		}
		held.Close()
		x.wantQuiet(t)
		if s := x.status(t); s.Sent != 1 {
			t.Errorf("sent %d, want only the other one", s.Sent)
		}
	})
}
