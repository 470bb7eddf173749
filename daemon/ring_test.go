package daemon_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/daemon"
)

// witness is a provider that notes what it is sent, and answers with a status.
type witness struct {
	*httptest.Server
	mu   sync.Mutex
	came []string // header and path of each request
}

func newWitness(t *testing.T, header string, answer func(key string) int) *witness {
	t.Helper()
	w := &witness{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.came = append(w.came, r.Header.Get(header)+" "+r.URL.RequestURI())
		w.mu.Unlock()
		rw.WriteHeader(answer(r.Header.Get(header)))
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.came
	w.came = nil
	return all
}

// Keys of a ring are sent in the provider's header, in place of the client's key, and each has its own limits.
func TestKeysOfTheEnvironment(t *testing.T) {
	bad := "none"
	var mu sync.Mutex
	up := newWitness(t, "Authorization", func(key string) int {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(key, bad) {
			return http.StatusUnauthorized
		}
		return http.StatusOK
	})
	env := map[string]string{"AT": up.URL, "KEY_A": "sk-canary-a", "KEY_B": "sk-canary-b"}
	text := `
resources:
  api: {upstream: "${AT}", keys: [{env: KEY_A}, {env: KEY_B, share: 2}], limits: [{name: hour, size: 4/h}]}
` + fourTokens
	r := begin(t, "generic", text, env)
	if code, _ := r.as("", "GET", "/@a/api/x", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", code)
	}
	for range 3 {
		if code, body := r.as("low", "GET", "/@a/api/x?key=low&q=1", ""); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	came := up.take()
	slices.Sort(came)
	if want := []string{"Bearer sk-canary-a /x?q=1", "Bearer sk-canary-b /x?q=1", "Bearer sk-canary-b /x?q=1"}; !slices.Equal(came, want) {
		t.Errorf("came %q, want %q", came, want)
	}
	// A key that is refused is set aside, and the request goes with the other.
	mu.Lock()
	bad = "sk-canary-a"
	mu.Unlock()
	for range 2 { // the first goes with the key of the greater share
		if code, body := r.as("low", "GET", "/@a/api/x", ""); code != http.StatusOK {
			t.Error(code, body)
		}
	}
	if came := up.take(); !slices.Equal(came, []string{"Bearer sk-canary-b /x", "Bearer sk-canary-a /x", "Bearer sk-canary-b /x"}) {
		t.Errorf("came %q", came)
	}
	_, status := r.as("low", "GET", "/v1/status", "")
	if !strings.Contains(status, "the provider refuses the key (401); it is in KEY_A") || strings.Contains(status, "canary") {
		t.Error(status)
	}
	// The API takes labels of these keys, and has to be told which.
	label, err := r.gate.KeyLabel(t.Context(), "sk-canary-b")
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]int{``: http.StatusBadRequest, `,"key":"0123abcd"`: http.StatusForbidden, `,"key":"` + label + `"`: http.StatusTooManyRequests} {
		if code, text := r.as("top", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0`+body+`}`); code != want {
			t.Errorf("%s: %d %s, want %d", body, code, text, want)
		}
	}
	_, err = daemon.New(daemon.Options{File: r.file, Gate: r.gate, Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok && name != "KEY_B" }})
	if err == nil || !strings.Contains(err.Error(), "resources.api.keys[1]: the variable KEY_B is not set") || strings.Contains(err.Error(), "canary") {
		t.Errorf("without a key: %v", err)
	}
}

// When every key is refused, the client gets the provider's own answer at once.
func TestNoKeyIsLeft(t *testing.T) {
	up := newWitness(t, "Authorization", func(string) int { return http.StatusUnauthorized })
	r := begin(t, "generic", `
resources:
  api: {upstream: "${AT}", keys: [{env: KEY_A}, {env: KEY_B}], limits: [{name: hour, size: 3/h}]}
`+fourTokens, map[string]string{"AT": up.URL, "KEY_A": "sk-canary-a", "KEY_B": "sk-canary-b"})
	if code, body := r.as("low", "GET", "/@a/api/x", ""); code != http.StatusUnauthorized {
		t.Error(code, body)
	}
	if came := up.take(); len(came) != 2 {
		t.Errorf("came %q", came)
	}
}

// Calls that take no turn are also retried with another key. Calls that are only observed are sent once.
func TestOtherKeysOfCallsThatTakeNoTurn(t *testing.T) {
	for mode, want := range map[string]int{"gate": http.StatusOK, "observe": http.StatusUnauthorized} {
		t.Run(mode, func(t *testing.T) {
			up := newWitness(t, "X-Api-Key", func(key string) int {
				if key == "sk-canary-a" {
					return http.StatusUnauthorized
				}
				return http.StatusOK
			})
			r := begin(t, "generic", `
resources:
  anthropic: {provider: anthropic, mode: `+mode+`, upstream: "${AT}", keys: [{env: KEY_A}, {env: KEY_B}]}
`+fourTokens, map[string]string{"AT": up.URL, "KEY_A": "sk-canary-a", "KEY_B": "sk-canary-b"})
			for i, want := range []int{want, http.StatusOK} { // then it is known
				if code, body := r.as("low", "GET", "/@a/anthropic/v1/models", ""); code != want {
					t.Errorf("call %d: %d %s", i, code, body)
				}
			}
		})
	}
}

// What a client sends besides calls, such as telemetry with a login of its own, says nothing about the keys of a ring.
func TestTelemetryDoesNotJudgeKeys(t *testing.T) {
	up := newWitness(t, "X-Api-Key", func(string) int { return http.StatusUnauthorized })
	r := begin(t, "generic", `
resources:
  anthropic: {provider: anthropic, upstream: "${AT}", keys: [{env: KEY_A}, {env: KEY_B}]}
`+fourTokens, map[string]string{"AT": up.URL, "KEY_A": "sk-canary-a", "KEY_B": "sk-canary-b"})
	for range 3 {
		if code, body := r.as("low", "POST", "/@a/anthropic/api/event_logging/batch", `{"events":[]}`); code != http.StatusUnauthorized {
			t.Errorf("%d %s", code, body)
		}
	}
	if seen := up.take(); len(seen) != 3 || seen[0] != seen[2] { // one send each, always with the first key
		t.Errorf("%q", seen)
	}
}

// The addresses of a ring may disagree on the prefix of the calls.
func TestAddressesWithAndWithoutPrefix(t *testing.T) {
	ok := func(string) int { return http.StatusOK }
	one, two := newWitness(t, "Authorization", ok), newWitness(t, "Authorization", ok)
	r := begin(t, "generic", `
resources:
  openai:
    provider: openai
    keys: [{env: KEY_ONE, upstream: "${ONE}/v1"}, {env: KEY_TWO, upstream: "${TWO}"}]
    limits: [{name: minute, size: 1/min, per: [key]}]
`+fourTokens, map[string]string{"ONE": one.URL, "TWO": two.URL, "KEY_ONE": "sk-one", "KEY_TWO": "sk-two"})
	for _, path := range []string{"/embeddings", "/v1/embeddings"} {
		if code, body := r.as("low", "POST", "/@a/openai"+path, `{"model":"m"}`); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	if a, b := one.take(), two.take(); len(a) != 1 || len(b) != 1 || !strings.HasSuffix(a[0], " /v1/embeddings") || !strings.HasSuffix(b[0], " /v1/embeddings") {
		t.Errorf("one %q, two %q", a, b)
	}
}

// Two addresses share a resource; requests keep their paths.
func TestTwoAddresses(t *testing.T) {
	ok := func(string) int { return http.StatusOK }
	east, west := newWitness(t, "Api-Key", ok), newWitness(t, "Api-Key", ok)
	r := begin(t, "generic", `
resources:
  azure:
    provider: azure
    keys: [{env: EAST_KEY, upstream: "${EAST}/e"}, {env: WEST_KEY, upstream: "${WEST}"}]
    limits: [{name: minute, size: 2/min, unit: requests}]
`+fourTokens, map[string]string{"EAST": east.URL, "WEST": west.URL, "EAST_KEY": "sk-east", "WEST_KEY": "sk-west"})
	for range 4 {
		if code, body := r.as("low", "GET", "/@a/azure/openai/files/a%2Fb?api-version=1", ""); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	if e, w := east.take(), west.take(); len(e) != 2 || len(w) != 2 || e[0] != "sk-east /e/openai/files/a%2Fb?api-version=1" || w[0] != "sk-west /openai/files/a%2Fb?api-version=1" {
		t.Errorf("east %q, west %q", e, w)
	}
}
