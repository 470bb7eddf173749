package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/loopback"
	"github.com/sluicehq/sluice/sluicehttp"
)

// Headers in which a client describes itself. The provider gets none of them.
const (
	headerPrefix    = "X-Sluice-"
	headerAgent     = headerPrefix + "Agent"
	headerClass     = headerPrefix + "Class"
	headerTool      = headerPrefix + "Tool"
	headerUser      = headerPrefix + "User"
	headerEmergency = headerPrefix + "Emergency"
	headerToken     = headerPrefix + "Token"
	headerVia       = headerPrefix + "Via"
	headerRoute     = headerPrefix + "Route"
)

// ownHeader is a header in which agents name themselves, or the agent that started them. The agent's name is prefix and
// the first enough bytes of the value, which suffice to tell agents apart; 0 means the whole value.
type ownHeader struct {
	header, prefix string
	enough         int
}

// Headers that agents send anyway. A session id is random from its first digit on; agent ids may share a beginning.
var (
	sessionHeader = ownHeader{"X-Claude-Code-Session-Id", "claude-code-", 8}
	agentHeader   = ownHeader{"X-Claude-Code-Agent-Id", "claude-code-", 24}
	ownHeaders    = []ownHeader{{header: "X-Agent-Id"}, agentHeader, sessionHeader}
)

// keyHeaders lists the headers in which clients send keys.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// maxName bounds the length of an agent's name.
const maxName = 128

// Token gives its bearer access.
type Token struct {
	Name  string
	Hash  string // SHA-256 of the token, in hexadecimal
	Agent string // the bearer's agent; empty means that the bearer states it
	User  string // the bearer's user; empty means that the bearer states it, or the configuration of its agent
	Class string // the bearer's highest class; empty means any
}

// tokens finds tokens by their hashes, so that no comparison involves a secret.
type tokens map[[sha256.Size]byte]Token

func newTokens(list []Token, classes []string) (tokens, error) {
	all := tokens{}
	for _, t := range list {
		sum, err := hex.DecodeString(t.Hash)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("proxy: token %s: its hash is not a SHA-256 in hexadecimal", t.Name)
		}
		if t.Class != "" && !slices.Contains(classes, t.Class) {
			return nil, fmt.Errorf("proxy: token %s: unknown class %q", t.Name, t.Class)
		}
		all[[sha256.Size]byte(sum)] = t
	}
	return all, nil
}

// find returns the token of a request: in its own header, or where a key would be.
func (ts tokens) find(r *http.Request) (Token, bool) {
	if len(ts) == 0 {
		return Token{}, false
	}
	if in := InterceptedOf(r); in != nil && in.Token != "" { // an unknown token here must not be replaced by another one
		t, ok := ts[sha256.Sum256([]byte(in.Token))]
		return t, ok
	}
	for _, name := range append([]string{headerToken}, keyHeaders...) {
		for _, v := range r.Header.Values(name) {
			if t, ok := ts[sha256.Sum256([]byte(bare(v)))]; ok {
				return t, true
			}
		}
	}
	return ts.query(r)
}

// query returns the token in the query parameter that Gemini uses for keys.
func (ts tokens) query(r *http.Request) (Token, bool) {
	if len(ts) == 0 || r.URL.RawQuery == "" {
		return Token{}, false
	}
	t, ok := ts[sha256.Sum256([]byte(r.URL.Query().Get("key")))]
	return t, ok
}

// Bearer returns the token of a request. ok is false if it has none; needed reports whether it needs one.
func (p *Proxy) Bearer(r *http.Request) (t Token, ok, needed bool) {
	t, ok = p.tokens.find(r)
	return t, ok, len(p.tokens) > 0 && !loopback.Socket(r)
}

// NeedsToken reports whether a client of this connection needs a token.
func (p *Proxy) NeedsToken(r *http.Request) bool { return len(p.tokens) > 0 && !loopback.Socket(r) }

// KnowsToken reports whether a token is valid.
func (p *Proxy) KnowsToken(token string) bool {
	_, ok := p.tokens[sha256.Sum256([]byte(token))]
	return ok
}

// strip removes tokens from the headers for keys: they belong to the gate and must not reach the provider.
func (ts tokens) strip(h http.Header) {
	if len(ts) == 0 {
		return
	}
	for _, name := range keyHeaders {
		if slices.ContainsFunc(h.Values(name), func(v string) bool { _, is := ts[sha256.Sum256([]byte(bare(v)))]; return is }) {
			h.Del(name)
		}
	}
}

// bare returns a credential without its scheme.
func bare(v string) string {
	if scheme, rest, ok := strings.Cut(v, " "); ok && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "token")) {
		return strings.TrimSpace(rest)
	}
	return v
}

// identify returns who sends a request: the agent of the token, of the path, of the X-Sluice headers, of the headers
// that the agent sends anyway, or the client that the User-Agent names.
func (p *Proxy) identify(r *http.Request, at *destination) (c sluicehttp.Caller, f *refusal) {
	h := r.Header
	token, borne := p.tokens.find(r)
	if at.door.lends() && !borne && !isTrusted(r) {
		return c, refuse(http.StatusUnauthorized, "the gate adds the API key of "+at.door.name+" for clients with a token only",
			"send a token in X-Sluice-Token, or as the API key")
	}
	if !borne && (get(h, headerToken) != "" || len(p.tokens) > 0 && !isTrusted(r)) { // otherwise the bearer would go on as an anonymous client
		return c, refuse(http.StatusUnauthorized, "a valid token is needed", "send it in X-Sluice-Token; ask the operator of the gate for one")
	}
	c = sluicehttp.Caller{Agent: at.agent, Class: at.class, Wait: at.door.res.Deadline}
	agent, class := Named(h)
	c.Agent, c.Class = firstOf(c.Agent, agent), firstOf(c.Class, class)
	c.Tool, c.User = get(h, headerTool), get(h, headerUser)
	c.Emergency, c.Retry = isTrue(get(h, headerEmergency)), sluicehttp.Retried(h)
	for _, n := range [...]struct{ what, name string }{{"agent", c.Agent}, {"class", c.Class}, {"tool", c.Tool}, {"user", c.User}} {
		if len(n.name) > maxName {
			return c, refuse(http.StatusBadRequest, fmt.Sprintf("the name of the %s has %d bytes, more than %d", n.what, len(n.name), maxName), "shorten it")
		}
	}
	if c.Class != "" && !slices.Contains(p.classes, c.Class) {
		return c, refuse(http.StatusBadRequest, "unknown class "+quoted(c.Class), "use one of: "+strings.Join(p.classes, ", "))
	}
	if f := checkParent(h); f != nil {
		return c, f
	}
	if !borne {
		p.users.Note(c.User, time.Now())
		return p.byClient(c, h), nil
	}
	bound, f := p.bind(c, token)
	if f != nil || bound.Agent != "" {
		return bound, f
	}
	if called, f := p.bind(p.byClient(c, h), token); f == nil { // a User-Agent is no reason to refuse a request
		return called, nil
	}
	return bound, nil
}

// byClient calls a caller without a name by its client. Such a caller stays in the class of those without a name, even if
// the configuration lists the name in a higher one: programs send a User-Agent without meaning to claim anything.
func (p *Proxy) byClient(c sluicehttp.Caller, h http.Header) sluicehttp.Caller {
	client := p.clients.Of(h)
	if c.Agent != "" || client == nil {
		return c
	}
	c.Agent = client.Name
	if usual := p.gate.Class(""); c.Class == "" && slices.Index(p.classes, p.gate.Class(c.Agent)) < slices.Index(p.classes, usual) {
		c.Class = usual
	}
	return c
}

// bind applies the restrictions of a token to its bearer.
func (p *Proxy) bind(c sluicehttp.Caller, t Token) (sluicehttp.Caller, *refusal) {
	if t.Agent != "" {
		if c.Agent != "" && c.Agent != t.Agent {
			return c, refuse(http.StatusForbidden, fmt.Sprintf("the token is agent %s's, not %s's", t.Agent, quoted(c.Agent)), "leave the agent out, or use its own token")
		}
		c.Agent = t.Agent
	}
	highest := max(slices.Index(p.classes, t.Class), 0)
	var why string
	if c.User, why = p.users.May(p.gate, Speaker{t.Agent, t.User, highest}, c.Agent, c.User, time.Now()); why != "" {
		return c, refuse(http.StatusForbidden, why, HintOfUser)
	}
	if t.Class == "" {
		return c, nil
	}
	switch {
	case c.Class == "": // it may be lower than what the token allows
		if c.Class = p.gate.Class(c.Agent); slices.Index(p.classes, c.Class) < highest {
			c.Class = t.Class
		}
	case slices.Index(p.classes, c.Class) < highest:
		return c, refuse(http.StatusForbidden, fmt.Sprintf("the token allows class %s at most, not %s", t.Class, c.Class), "ask in a lower class, or use another token")
	}
	if c.Emergency && highest > 0 {
		return c, refuse(http.StatusForbidden, "the token allows class "+t.Class+" at most, which has no emergencies", "ask without X-Sluice-Emergency")
	}
	return c, nil
}

// Named returns the agent and the class that the headers of a request name; empty if they name none.
func Named(h http.Header) (agent, class string) {
	return firstOf(get(h, headerAgent), ownName(h)), get(h, headerClass)
}

// ownName returns the name that an agent gives itself.
func ownName(h http.Header) string { return firstName(h, ownHeaders) }

// firstName returns the name in the first of the headers that has one.
func firstName(h http.Header, headers []ownHeader) string {
	for _, o := range headers {
		if name := o.name(h); name != "" {
			return name
		}
	}
	return ""
}

// name returns the agent that the header names, cut to the part that tells it apart; empty if there is none.
func (o ownHeader) name(h http.Header) string {
	name := get(h, o.header)
	if name == "" {
		return ""
	}
	if o.enough > 0 && len(name) > o.enough {
		name = name[:o.enough]
	}
	return o.prefix + name
}

// get returns the first value of a header whose name is in canonical form.
func get(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
