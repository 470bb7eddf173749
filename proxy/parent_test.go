package proxy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/proxy"
)

// waitsFor returns the agent that an agent waits for, according to the gate.
func (r *rig) waitsFor(agent string) string {
	r.Helper()
	s, err := r.gate.Status(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, a := range s.Agents {
		if a.Name == agent {
			return strings.Join(a.WaitsFor, " ")
		}
	}
	return "(not alive)"
}

func (r *rig) lease(agents ...string) {
	r.Helper()
	for _, a := range agents {
		if err := r.gate.Heartbeat(r.Context(), sluice.JoinRequest{Agent: a, Machine: "m"}); err != nil {
			r.Fatal(err)
		}
	}
}

func TestWhoStartedWhom(t *testing.T) {
	const session, agent, nested = "0a1b2c3d-1111-2222-3333-444455556666", "a0123456789abcdef", "a0123456ffffffff"
	for name, c := range map[string]struct {
		parent, waits string
		header        []string
	}{
		"in our own words":                  {"boss", "hand", []string{"X-Sluice-Agent", "hand", "X-Sluice-Parent", "boss"}},
		"in words that several use":         {"boss", "hand", []string{"X-Agent-Id", "hand", "X-Parent-Agent-Id", "boss"}},
		"an agent of a session":             {"claude-code-0a1b2c3d", "claude-code-" + agent, []string{"X-Claude-Code-Session-Id", session, "X-Claude-Code-Agent-Id", agent}},
		"an agent of an agent":              {"claude-code-" + agent, "claude-code-" + nested, []string{"X-Claude-Code-Session-Id", session, "X-Claude-Code-Agent-Id", nested, "X-Claude-Code-Parent-Agent-Id", agent}},
		"a session has no parent":           {"claude-code-0a1b2c3d", "", []string{"X-Claude-Code-Session-Id", session}},
		"nobody is its own":                 {"boss", "", []string{"X-Sluice-Agent", "boss", "X-Sluice-Parent", "boss"}},
		"one without a name works for none": {"boss", "", []string{"X-Sluice-Parent", "boss"}},
		"one whose name is too long is not": {"boss", "", []string{"X-Agent-Id", "hand", "X-Parent-Agent-Id", strings.Repeat("x", 129)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := begin(t, perMinute(100), hello, nil)
			r.lease(c.parent)
			if resp, body := r.get("/api/x", c.header...); resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if got := r.waitsFor(c.parent); got != c.waits {
				t.Errorf("%s waits for %q, want %q", c.parent, got, c.waits)
			}
			if h := (<-r.seen).Header; h.Get("X-Sluice-Parent") != "" {
				t.Error("our own word goes on to the provider")
			}
		})
	}
}

func TestAParentNobodyKnowsIsNone(t *testing.T) {
	r := begin(t, perMinute(100), hello, nil)
	r.get("/@hand/api/x", "X-Sluice-Parent", "stranger")
	r.lease("stranger") // it appears later: what was said before is not known of it
	if got := r.waitsFor("stranger"); got != "" {
		t.Errorf("it waits for %q", got)
	}
	resp, body := r.get("/@hand/api/x", "X-Sluice-Parent", strings.Repeat("x", 129))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "parent has 129 bytes") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// A token names only its own agent as the child.
func TestATokenSpeaksOfItselfAsAChild(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	r := begin(t, perMinute(100), hello, func(o *proxy.Options) {
		o.Tokens = []proxy.Token{{Name: "hand", Hash: hex.EncodeToString(sum[:]), Agent: "hand"}}
	})
	r.lease("boss", "other")
	if resp, body := r.get("/api/x", "X-Sluice-Token", "secret", "X-Sluice-Parent", "boss"); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if resp, _ := r.get("/api/x", "X-Sluice-Token", "secret", "X-Sluice-Agent", "other", "X-Sluice-Parent", "boss"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("it speaks for another: %d", resp.StatusCode)
	}
	if got := r.waitsFor("boss"); got != "hand" {
		t.Errorf("boss waits for %q, want hand", got)
	}
}

// Regression: a token below the highest class kept agents of the highest class from new work by naming them as its
// parents.
func TestALowerTokenDoesNotHoldParentsOfAHigherClass(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	r := begin(t, perMinute(100), hello, func(o *proxy.Options) {
		o.Tokens = []proxy.Token{{Name: "low", Hash: hex.EncodeToString(sum[:]), Class: "p2"}}
	})
	for agent, class := range map[string]string{"boss": "p0", "peer": "p2"} {
		if err := r.gate.Heartbeat(t.Context(), sluice.JoinRequest{Agent: agent, Class: class, Machine: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, agent := range []string{"boss", "peer"} {
		if resp, body := r.get("/@hand/api/x", "X-Sluice-Token", "secret", "X-Sluice-Parent", agent); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	if got := r.waitsFor("boss"); got != "" {
		t.Errorf("the boss waits for %q", got)
	}
	if got := r.waitsFor("peer"); got != "hand" {
		t.Errorf("the peer waits for %q, want hand", got)
	}
}

// While the child is held, the chain tells its parent.
func TestParentOfOneThatIsHeldIsTold(t *testing.T) {
	r := begin(t, perMinute(100), hello, nil)
	r.lease("boss")
	if err := r.gate.Pause(t.Context(), "api", 30*time.Second, "test"); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.get("/@hand/api/x", "X-Sluice-Parent", "boss")
	}()
	told := func() inspect.NewWork {
		w, err := r.gate.StartNewWork(t.Context(), "boss")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := told()
	for end := time.Now().Add(30 * time.Second); w.Start && time.Now().Before(end); w = told() {
		time.Sleep(5 * time.Millisecond)
	}
	if w.Start || strings.Join(w.Chain, " ") != "boss hand" || !strings.Contains(w.Reason, "paused") {
		t.Errorf("it is told %+v", w)
	}
	if err := r.gate.Resume(t.Context(), "api"); err != nil {
		t.Fatal(err)
	}
	<-done
	if w := told(); !w.Start {
		t.Errorf("it is over, and it is told %+v", w)
	}
}
