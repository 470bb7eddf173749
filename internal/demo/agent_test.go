package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// upstream answers as the function says.
type upstream func(r *http.Request) (status int, header http.Header, err error)

func (f upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	status, header, err := f(r)
	if err != nil {
		return nil, err
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// works runs an agent and returns its last state.
func works(ctx context.Context, a Agent, f upstream) (last State, told int) {
	c := &caller{Agent: a, base: "http://provider", key: "k", client: &http.Client{Transport: f}}
	c.work(ctx, func(s State) { last, told = s, told+1 })
	return last, told
}

func TestAgentSendsUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var sent []string
		var at []time.Duration
		s, told := works(t.Context(), Agent{Name: "chat", Calls: 1, Workers: 3}, func(r *http.Request) (int, http.Header, error) {
			sent = append(sent, r.Header.Get("X-Stainless-Retry-Count"))
			at = append(at, time.Since(began))
			if r.URL.String() != "http://provider/v1/messages" || r.Header.Get("X-Api-Key") != "k" || r.Header.Get("X-Agent-Id") != "chat" {
				t.Errorf("%s %v", r.URL, r.Header)
			}
			switch len(sent) {
			case 1:
				return 429, http.Header{"Retry-After": {"7"}}, nil
			case 2:
				return 529, nil, nil
			case 3:
				return 0, nil, errors.New("reset")
			}
			return 200, nil, nil
		})
		if strings.Join(sent, " ") != "0 1 2 3" {
			t.Fatalf("sent %q", sent)
		}
		for i, least := range []time.Duration{0, 7 * time.Second, time.Second, 2 * time.Second} {
			if i > 0 {
				if got := at[i] - at[i-1]; got < least || got > least+least/4 {
					t.Errorf("wait %d: %v, at least %v", i, got, least)
				}
			}
		}
		if s.Done != 1 || s.Sends != 4 || s.Throttled != 1 || s.Failed != 2 || s.Waiting != 0 || !s.Ended || s.Error != "" || s.Longest != at[3] || s.Total != at[3] {
			t.Errorf("%+v", s)
		}
		if told < 3 || told > 10 { // only after changes
			t.Errorf("it told %d times", told)
		}
	})
}

func TestAgentHasSoManyCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		under, most := 0, 0
		s, _ := works(t.Context(), Agent{Calls: 10, Workers: 4}, func(*http.Request) (int, http.Header, error) {
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			under--
			mu.Unlock()
			return 200, nil, nil
		})
		if most != 4 || s.Done != 10 || s.Sends != 10 || s.Total != 10*time.Second {
			t.Errorf("%d at once, %+v", most, s)
		}
	})
}

// Permanent errors are not retried.
func TestAgentGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := works(t.Context(), Agent{Name: "docs", Calls: 5, Workers: 2}, func(*http.Request) (int, http.Header, error) { return 401, nil, nil })
		if !s.Ended || s.Done != 0 || !strings.Contains(s.Error, `agent docs was answered with status 401: "{}"`) {
			t.Errorf("%+v", s)
		}
	})
}

func TestAgentEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		s, _ := works(ctx, Agent{Calls: 5, Workers: 2}, func(*http.Request) (int, http.Header, error) { return 429, nil, nil })
		if !s.Ended || s.Error != context.Canceled.Error() || s.Waiting != 0 || s.Throttled == 0 {
			t.Errorf("%+v", s)
		}
	})
}

// An agent's process reads its task, begins on the signal to start, and ends when its parent is gone.
func TestAgentProcess(t *testing.T) {
	arrived, left := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
		close(left)
	}))
	defer server.Close()
	in, feed := io.Pipe()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- RunAgent(t.Context(), in, out, func(name string) string {
			return map[string]string{baseVariable: server.URL, keyVariable: "k"}[name]
		})
		_ = out.Close()
	}()
	lines := bufio.NewScanner(said)
	write := func(text string) {
		if _, err := io.WriteString(feed, text); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"name":"chat","class":"p0","calls":1,"workers":1}` + "\n")
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"done":0,`) {
		t.Fatalf("it said %q", lines.Text())
	}
	write("go\n")
	<-arrived
	_ = feed.Close()
	var last State
	for lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(<-ended, lines.Err()); err != nil || !last.Ended || last.Error == "" || last.Done != 0 {
		t.Errorf("%v, %+v", err, last)
	}
	<-left
}

func TestAgentThatMakesNoSense(t *testing.T) {
	there := func(string) string { return "http://127.0.0.1:1" }
	for text, env := range map[string]func(string) string{
		"": there, "{}": there, "no\n": there, `{"calls":-1,"workers":1}` + "\n": there, `{"calls":1,"workers":0}` + "\n": there,
		`{"calls":1,"workers":1}` + "\n": func(string) string { return "" }, strings.Repeat("x", 10_000) + "\n": there,
	} {
		var out bytes.Buffer
		if err := RunAgent(t.Context(), strings.NewReader(text), &out, env); err == nil || out.Len() > 0 {
			t.Errorf("%.40q: %v, it said %q", text, err, out.String())
		}
	}
	// An agent without the signal to start prints only that it is ready.
	var out bytes.Buffer
	if err := RunAgent(t.Context(), strings.NewReader(`{"calls":1,"workers":1}`+"\n"), &out, there); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v, it said %q", err, out.String())
	}
}
