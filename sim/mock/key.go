package mock

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
)

// fingerprint identifies an API key without storing it. All requests without a key have the same one.
type fingerprint [sha256.Size]byte

// fingerprints computes fingerprints with a secret that lives as long as the server.
type fingerprints struct{ secret [32]byte }

func newFingerprints() *fingerprints {
	f := new(fingerprints)
	_, _ = rand.Read(f.secret[:]) // never fails
	return f
}

// keyHeaders are the headers in which clients send keys.
var keyHeaders = [...]string{"X-Api-Key", "Authorization", "Api-Key", "X-Goog-Api-Key"}

func (f *fingerprints) of(h http.Header) fingerprint {
	for _, name := range keyHeaders {
		key := h.Get(name)
		if key == "" {
			continue
		}
		if scheme, rest, ok := strings.Cut(key, " "); ok && name == "Authorization" && scheme != "Basic" {
			key = rest // "Bearer" and "token" mean the same
		}
		mac := hmac.New(sha256.New, f.secret[:])
		mac.Write([]byte(key))
		return fingerprint(mac.Sum(nil))
	}
	return fingerprint{}
}

// requestID returns a new id. It differs for every response, as with real providers.
func requestID(prefix string) string { return prefix + rand.Text()[:24] }
