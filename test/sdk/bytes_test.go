//go:build linux || darwin

package sdk_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// rawRequest is one that no client has made.
type rawRequest struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// rawAnswer is all that came back.
type rawAnswer struct {
	Status            int
	Reason, Version   string
	Headers, Trailers []string // names and values
	Body              string   // base64
}

// own are headers that are another one's in every answer, through the gate or not: docs/sdks.md lists them.
var own = []string{"Date", "Request-Id", "X-Request-Id", "X-Github-Request-Id"}

// stated begin the headers that tell what is left of a limit, which depends on what was sent before.
var stated = []string{"Anthropic-Ratelimit-", "X-Ratelimit-", "Ratelimit"}

// TestByteForByte: what comes through the gate is what the provider has sent: status, header, body and trailers.
func TestByteForByte(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, setup{})
		requests := rawRequests[c.script]
		for _, version := range []string{"1.1", "2"} {
			r.compareRaw(requests, r.raw(r.mock, version, requests), r.raw(r.gate, version, requests))
		}
	})
}

func (r *rig) compareRaw(requests []rawRequest, without, with []rawAnswer) {
	r.Helper()
	for i, q := range requests {
		if a, b := firstDifference(without[i].plain(), with[i].plain()); a != b {
			r.Errorf("HTTP/%s %s %s %v %s: through the gate it is\n%s\nand without it\n%s", with[i].Version, q.Method, q.Path, q.Headers, q.Body, b, a)
		}
	}
}

// raw sends requests to an address.
func (r *rig) raw(address, version string, requests []rawRequest) []rawAnswer {
	r.Helper()
	list, err := json.Marshal(requests)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "raw.mjs", address, version)
	cmd.Dir, cmd.Env, cmd.Stdin = nodeDir, built.Env(r.home), bytes.NewReader(list)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.Fatalf("raw.mjs: %v\n%s", err, stderr.Bytes())
	}
	answers := decode[[]rawAnswer](r.T, out)
	if len(answers) != len(requests) {
		r.Fatalf("%d answers to %d requests", len(answers), len(requests))
	}
	return answers
}

// plain is an answer as text, without what is different in each.
func (a *rawAnswer) plain() string {
	body, err := base64.StdEncoding.DecodeString(a.Body)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	b.WriteString("HTTP/" + a.Version + " " + strconv.Itoa(a.Status) + " " + a.Reason + "\n")
	var lines []string
	for i := 0; i+1 < len(a.Headers); i += 2 {
		name, value := a.Headers[i], a.Headers[i+1]
		name = http.CanonicalHeaderKey(name) // HTTP/2 has small letters
		if slices.Contains(own, name) || slices.ContainsFunc(stated, func(s string) bool { return strings.HasPrefix(name, s) }) {
			value = "*"
		}
		if a.Version == "2" && name == "Content-Length" {
			continue // the frames tell, and the provider is asked with HTTP/1.1
		}
		lines = append(lines, name+": "+value+"\n")
	}
	slices.SortStableFunc(lines, func(a, b string) int { // the order of names means nothing, that of one name's values does
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	})
	b.WriteString(strings.Join(lines, ""))
	b.WriteString("\n")
	b.Write(requestID.ReplaceAll(body, []byte("req_")))
	b.WriteString("\n" + strings.Join(a.Trailers, ": "))
	return b.String()
}

// firstDifference is the first line that two texts do not have in common.
func firstDifference(a, b string) (string, string) {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(as), len(bs)) {
		switch {
		case i >= len(as):
			return "(nothing)", bs[i]
		case i >= len(bs):
			return as[i], "(nothing)"
		case as[i] != bs[i]:
			return as[i], bs[i]
		}
	}
	return "", ""
}
