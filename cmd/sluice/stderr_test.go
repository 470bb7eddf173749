//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// talkative is an upstream that answers one request, and sends more once it is told to.
type talkative struct {
	url  string
	more chan struct{}
	gone chan error // how its client closed the connection then
}

func newTalkative(t *testing.T) *talkative {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	u := &talkative{"http://" + l.Addr().String(), make(chan struct{}), make(chan error, 1)}
	go func() { u.gone <- u.serve(l) }()
	return u
}

func (u *talkative) serve(l net.Listener) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	q, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, q.Body)
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
		return err
	}
	<-u.more
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Secret: LEAKED\r\n\r\n"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, c) // until the client has seen it, and closed
	return nil
}

// tellsMore makes the upstream send unrequested bytes, and waits until they were read.
func (u *talkative) tellsMore(t *testing.T) {
	t.Helper()
	close(u.more)
	if err := <-u.gone; err != nil {
		t.Fatal(err)
	}
}

// keptQuiet checks that stderr shows nothing from the upstream.
func (p *process) keptQuiet() {
	p.t.Helper()
	if said, _ := io.ReadAll(p.stderr); strings.Contains(string(said), "LEAKED") || strings.Contains(string(said), "nsolicited") {
		p.t.Errorf("on stderr: %q", said)
	}
}

// postTwice sends a request, and then one with two lengths, and returns their status codes.
func postTwice(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	head := fmt.Sprintf("POST %s/v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n", u.Path)
	if _, err := fmt.Fprintf(c, "%s\r\n0\r\n\r\n%sContent-Length: 5\r\n\r\n0\r\n\r\n", head, head); err != nil {
		return "", err
	}
	var got []string
	for r := bufio.NewReader(c); len(got) < 2; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return "", err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		got = append(got, fmt.Sprint(resp.StatusCode))
	}
	return strings.Join(got, " "), nil
}

// The daemon does not print bytes that an upstream sends unrequested.
func TestServePrintsNoUpstreamBytes(t *testing.T) {
	t.Parallel()
	u := newTalkative(t)
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {api: {upstream: "+u.url+"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, urls := listening(t, "--config", file, "--listen", "127.0.0.1:0")
	if got, err := postTwice(urls[0] + "/@a/api"); got != "200 400" {
		t.Errorf("%q %v", got, err)
	}
	u.tellsMore(t)
	p.signal(syscall.SIGTERM)
	p.ends(0)
	p.keptQuiet()
}

// Neither does run, whose gate also refuses requests with two lengths.
func TestRunPrintsNoUpstreamBytes(t *testing.T) {
	t.Parallel()
	u := newTalkative(t)
	p := start(t, []string{"ANTHROPIC_BASE_URL=" + u.url}, "run", "--", child(t), "calls")
	p.says("200 400")
	u.tellsMore(t)
	_ = p.stdin.Close()
	p.ends(0)
	p.keptQuiet()
}
