package config

import (
	"errors"
	"strings"
	"testing"
)

// Regression: a mistake on one line showed the secret on the next. The secret's own message had no excerpt, but the
// other one did.
func TestSecretsNearAMistakeAreNotShown(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"key for its variable's name": "resources:\n  api:\n    inject: {header: x-api-key, env: sk-SECRET-1}\n",
		"the line before":             "resources:\n  api:\n    key_env: sk-SECRET-1\n    nonsense: 1\n",
		"the line after":              "nonsense: 1\nalerts: {webhook: \"https://hooks.example.com/SECRET\"}\n",
		"token for its hash":          "tokens:\n  - {name: a, hash: SECRET}\n  - {name: a, class: p9}\n",
		"there twice":                 "alerts:\n  webhook: https://hooks.example.com/SECRET\nstore: \"mem:\"\nstore: \"mem:\"\n",
		"user of an address":          "resources:\n  api:\n    upstream: https://SECRET@example.com\n    use: 0%\n",
		"at sign in a password":       "nonsense: 1\nstore: redis://me:one@SECRET@host:6379\n",
		"slash in a password":         "store: redis://me:one/SECRET@host:6379\n",
		"no slashes":                  "store: redis:me:SECRET@host:6379\n",
		"password of the sentinels":   "nonsense: 1\nstore: redis+sentinel://a/main?sentinel_password=SECRET\n",
		"key for its file":            "tls:\n  cert: a.pem\n  key: |\n    -----BEGIN PRIVATE KEY-----\n    SECRET\n    -----END PRIVATE KEY-----\n",
		"key for certificates":        "upstream_ca: |\n  -----BEGIN PRIVATE KEY-----\n  SECRET\n  -----END PRIVATE KEY-----\n",
		"key beside a mistake":        "tls: {cert: a.pem, key: \"-----BEGIN PRIVATE KEY----- SECRET\"}\nnonsense: 1\n",
		"password of the cluster":     "store: redis+cluster://me:SECRET@a:1,:2\n",
	} {
		_, err := Parse("f.yaml", []byte(text), func(string) (string, bool) { return "", false })
		var all Errors
		var one *ParseError
		if !errors.As(err, &all) && errors.As(err, &one) {
			all = Errors{one}
		}
		if len(all) == 0 {
			t.Errorf("%s: got %v", name, err)
		}
		for _, e := range all {
			if s := e.Error() + "\n" + e.Excerpt; strings.Contains(s, "SECRET") {
				t.Errorf("%s: the message is\n%s", name, s)
			}
		}
	}
}

// Excerpts leave out characters that change the text direction, as they do control characters.
func TestExcerptsKeepTheirDirection(t *testing.T) {
	t.Parallel()
	_, err := Parse("f.yaml", []byte("\"a\u202eb\": 1\n"), func(string) (string, bool) { return "", false })
	var bad *ParseError
	if !errors.As(err, &bad) || bad.Excerpt == "" || strings.ContainsRune(bad.Error()+bad.Excerpt, '\u202e') {
		t.Errorf("got %v\n%+v", err, bad)
	}
}

// Regression: Show showed the password among the parameters of a store's address.
func TestShownConfigurationHasNoPassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"store: redis://me:SECRET@host:6379\n":                                                       "redis://me:******@host:6379",
		"store: redis+cluster://me:SECRET@a:1,b:2\n":                                                 "redis+cluster://me:******@a:1,b:2",
		"store: redis+sentinel://a:1,b:2/main?sentinel_user=u&sentinel_password=SECRET&timeout=1s\n": "?sentinel_user=u&sentinel_password=***&timeout=1s",
		"store: redis+sentinel://a/main?sentinel_password=$$SECRET\n":                                "?sentinel_password=***",
		"store: \"redis+sentinel://a/main?sentinel_password=${HELD}\"\n":                             "?sentinel_password=${HELD}",
		"alerts: {webhook: \"https://hooks.example.com/services/SECRET?x=SECRET\"}\n":                "https://hooks.example.com/***",
		"alerts: {webhook: \"https://hooks.example.com/${HELD}\"}\n":                                 "https://hooks.example.com/${HELD}",
	} {
		f, err := Parse("f.yaml", []byte(text), func(string) (string, bool) { return "SECRET", true })
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		shown, err := f.Show()
		if err != nil || strings.Contains(string(shown), "SECRET") || !strings.Contains(string(shown), want) {
			t.Errorf("%s is shown as\n%s%v", text, shown, err)
		}
	}
}

// Valid and invalid addresses of stores.
func TestAddressesOfStores(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"mem:", "file:", "file:/var/lib/sluice", "redis://localhost", "redis://localhost:6379/1?prefix=a:b", "rediss://[::1]:6380?ca=/etc/ca.pem", "redis://me@host",
		"redis://:p%2Fw@host", "redis+cluster://a:1,b:2,[::1]:3", "rediss+cluster://u:p@a", "redis+sentinel://a:1,b/main/2", "rediss+sentinel://u:p@a/main",
		"redis+unix:///run/redis.sock?db=1", "redis+unix://u:p@/run/redis.sock", "http://localhost:7979", "https://sluice.example.com",
	} {
		if f, err := Parse("f.yaml", []byte("store: \""+address+"\"\n"), environment); err != nil || f.Store != address {
			t.Errorf("%s: %v", address, err)
		}
	}
}
