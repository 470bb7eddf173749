package config

import (
	"errors"
	"strings"
	"testing"
)

// A mistake on one line showed the secret on the next: its own message had no excerpt, but that of
// the other had.
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
	} {
		_, err := Parse("f.yaml", []byte(text), func(string) (string, bool) { return "", false })
		var all Errors
		if !errors.As(err, &all) {
			t.Errorf("%s: got %v", name, err)
		}
		for _, e := range all {
			if s := e.Error() + "\n" + e.Excerpt; strings.Contains(s, "SECRET") {
				t.Errorf("%s: the message is\n%s", name, s)
			}
		}
	}
}

// What turns the direction of text around stays out of excerpts, as control characters do.
func TestExcerptsKeepTheirDirection(t *testing.T) {
	t.Parallel()
	_, err := Parse("f.yaml", []byte("\"a\u202eb\": 1\n"), func(string) (string, bool) { return "", false })
	var bad *ParseError
	if !errors.As(err, &bad) || bad.Excerpt == "" || strings.ContainsRune(bad.Error()+bad.Excerpt, '\u202e') {
		t.Errorf("got %v\n%+v", err, bad)
	}
}
