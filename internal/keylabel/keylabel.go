// Package keylabel makes the labels by which API keys are told apart. The key cannot be computed from its label.
package keylabel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// None is the label of requests that carry no API key, where limits are per key.
const None = "none"

// size is the length of a label in bytes: enough to tell the keys of a fleet apart, too few to prove which key it is.
const size = 4

// Of returns the label of a key: eight hexadecimal digits of an HMAC with the secret. The label of an empty key is [None].
func Of(secret []byte, key string) string {
	if key == "" {
		return None
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key))
	return hex.EncodeToString(mac.Sum(nil)[:size])
}

// Is reports whether a text is a label as [Of] makes them. No provider's key is.
func Is(text string) bool {
	if text == None {
		return true
	}
	b, err := hex.DecodeString(text)
	return err == nil && len(b) == size && hex.EncodeToString(b) == text
}

// Source is what the label of a key is made of that goes to an address of its own: the same key at two addresses is two.
func Source(upstream, key string) string {
	if upstream == "" {
		return key
	}
	return upstream + "\x00" + key
}
