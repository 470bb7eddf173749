package daemon_test

import (
	"net/http"
	"strings"
	"testing"
)

// oneAnHour has two resources with one request an hour for each key: of the first the gate knows the key.
const oneAnHour = `
resources:
  api: {upstream: "${UPSTREAM}", split: key, key_env: THE_KEY, limits: [{name: hour, size: 1/h}]}
  open: {upstream: "${UPSTREAM}", split: key, limits: [{name: hour, size: 1/h}]}
  plain: {upstream: "${UPSTREAM}", limits: [{name: hour, size: 1/h}]}
`

// A caller of the API cannot get more room by inventing key labels.
func TestInventedKeysMakeNoRoom(t *testing.T) {
	r := begin(t, "generic", oneAnHour+fourTokens+"- {name: user, hash: "+tokenHash("user")+", user: u}\n", map[string]string{"THE_KEY": "sk-configured"})
	mine, err := r.gate.KeyLabel(t.Context(), "sk-configured")
	if err != nil {
		t.Fatal(err)
	}
	try := func(token, resource, key string, want int) {
		t.Helper()
		agent := "a"
		if token == "bob" {
			agent = "bob"
		}
		code, body := r.as(token, "POST", "/v1/tickets", `{"resource":"`+resource+`","agent":"`+agent+`","wait_ms":0,"key":"`+key+`"}`)
		if code != want {
			t.Errorf("token %s, %s, key %q: %d %s, want %d", token, resource, key, code, body, want)
		}
		if (code == 400 || code == 403) && !strings.Contains(body, `"hint"`) {
			t.Errorf("no hint: %s", body)
		}
	}
	// With a configured key, only its label counts, for all tokens; without one it is the configured key.
	for _, token := range []string{"top", "low", "bob", "user"} {
		try(token, "api", "0123abcd", http.StatusForbidden)
		try(token, "api", "none", http.StatusForbidden)
	}
	try("low", "api", mine, http.StatusOK)
	try("low", "api", mine, http.StatusTooManyRequests)
	try("top", "api", "", http.StatusTooManyRequests)
	// Without one, only a token that is not bound may name keys. The others share one limit.
	for _, token := range []string{"low", "bob", "user"} {
		try(token, "open", "0123abcd", http.StatusForbidden)
	}
	try("low", "open", "", http.StatusOK)
	try("bob", "open", "none", http.StatusTooManyRequests)
	try("top", "open", "0123abcd", http.StatusOK)
	try("top", "open", "0123abcd", http.StatusTooManyRequests)
	try("top", "open", "4567abcd", http.StatusOK)
	try("top", "open", "sk-configured", http.StatusBadRequest)
	// Where limits are not per key, a label makes no difference.
	try("bob", "plain", "0123abcd", http.StatusOK)
	try("bob", "plain", "4567abcd", http.StatusTooManyRequests)
	// Nor is anything learned of a key that does not exist.
	if code, body := r.as("top", "POST", "/v1/resources/api/observe", `{"status":429,"key":"0123abcd"}`); code != http.StatusForbidden {
		t.Errorf("observe: %d %s", code, body)
	}
	if code, body := r.as("top", "POST", "/v1/resources/api/observe", `{"status":429,"key":"`+mine+`"}`); code != http.StatusOK {
		t.Errorf("observe: %d %s", code, body)
	}
}

// The label of an injected key is that of its header, and the proxy and the API count it together.
func TestAnInjectedKeyIsOneKey(t *testing.T) {
	r := begin(t, "generic", `
resources:
  api: {upstream: "${UPSTREAM}", split: key, inject: {header: authorization, prefix: "Bearer ", env: THE_KEY}, limits: [{name: hour, size: 1/h}]}
`+fourTokens, map[string]string{"THE_KEY": "sk-injected"})
	if code, body := r.as("low", "GET", "/@a/api/", ""); code != http.StatusOK {
		t.Fatal(code, body)
	}
	if code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0}`); code != http.StatusTooManyRequests {
		t.Errorf("%d %s", code, body)
	}
}
