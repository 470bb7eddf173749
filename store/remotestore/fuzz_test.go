package remotestore

import (
	"strings"
	"testing"
)

// FuzzAddress reads any text as the address of a daemon. An address that is taken has a host or a socket and no token in it, and an
// error does not repeat the address, which may hold a token.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{
		"http://127.0.0.1:7979", "https://:token@gate.example", "http+unix:/run/sluice.sock", "http+unix:///run/s", "http://me:token@x", "http://token@x", "http://%zz", "http://x/y?z#w", "http:x", "http+unix:x", "http://[::1]:1", "",
	} {
		f.Add(text)
	}
	f.Setenv("SLUICE_TOKEN", "")
	f.Fuzz(func(t *testing.T, address string) {
		base, token, socket, err := parse(address)
		if err != nil {
			before, _, ok := strings.Cut(address, "@")
			if secret := before[strings.LastIndexByte(before, ':')+1:]; ok && len(secret) > 12 && strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", address, err)
			}
			return
		}
		if base.Host == "" || base.User != nil || base.RawQuery != "" || base.Path != "" {
			t.Errorf("%q is %q", address, base)
		}
		if socket == "" && len(token) > 12 && strings.Contains(base.String(), token) {
			t.Errorf("%q leaves the token in %q", address, base)
		}
	})
}
