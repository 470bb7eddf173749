package config

import (
	"strings"
	"testing"
)

// The configuration that a daemon shows holds no secret, and says what is in effect.
func TestPublicHoldsNoSecret(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	text := `
store: redis://:hunter2@10.0.0.5:6379
resources:
  api: {upstream: "https://api.example.com", limits: [{name: minute, size: 80/min}], inject: {env: API_KEY, header: X-Key}}
  other: {upstream: "${WHERE}", limits: [{name: minute, size: 7/min}]}
alerts: {webhook: "https://hooks.example.com/services/hunter2"}
tokens: [{name: ops, hash: ` + hash + `}]
`
	env := map[string]string{"API_KEY": "hunter2", "WHERE": "https://hunter2.example.com"}
	f, err := Parse("test.yaml", []byte(text), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	shown, err := f.Public()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", hash} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("%s is shown:\n%s", secret, shown)
		}
	}
	for _, part := range []string{"80/min", "API_KEY", "${WHERE}", "https://hooks.example.com/***", "name: ops", "share: 40%"} {
		if !strings.Contains(string(shown), part) {
			t.Errorf("%s is missing:\n%s", part, shown)
		}
	}
	if f.Tokens[0].Hash != hash {
		t.Error("the configuration itself was changed")
	}
	f, err = Parse("test.yaml", []byte("alerts: {webhook: \"${HOOK}\"}\n"), func(string) (string, bool) { return "https://hooks.example.com/hunter2", true })
	if err != nil {
		t.Fatal(err)
	}
	if shown, _ := f.Public(); strings.Contains(string(shown), "hunter2") || !strings.Contains(string(shown), "${HOOK}") {
		t.Errorf("%s", shown)
	}
}
