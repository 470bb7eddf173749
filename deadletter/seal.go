package deadletter

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
)

// ErrKey reports a key of the wrong form.
var ErrKey = errors.New("a key for dead letters has 32 random bytes, as 64 hexadecimal digits or as base64")

// sealedAs names the encryption of entries.
const sealedAs = "aes-256-gcm"

// sealed is the file of an encrypted entry. The id is authenticated with the data, so that one file cannot replace
// another.
type sealed struct {
	ID     string `json:"id"`
	Sealed string `json:"sealed"`
	Nonce  []byte `json:"nonce"`
	Data   []byte `json:"data"`
}

// SetKey makes the list encrypt new entries with AES-256-GCM and decrypt encrypted ones. The key is 32 bytes, in
// hexadecimal or base64. Unencrypted entries can still be read. Call SetKey before using the list.
func (l *List) SetKey(key string) error {
	key = strings.TrimSpace(key)
	raw, err := hex.DecodeString(key)
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if err != nil || len(raw) != 32 {
			raw, err = e.DecodeString(key)
		}
	}
	if err != nil || len(raw) != 32 {
		return ErrKey // do not quote it: it may still be a real key
	}
	block, err := aes.NewCipher(raw)
	if err == nil {
		l.seal, err = cipher.NewGCM(block)
	}
	return err
}

// closed returns the content of a file, encrypted if the list has a key.
func (l *List) closed(id string, data []byte) ([]byte, error) {
	if l.seal == nil {
		return data, nil
	}
	s := sealed{ID: id, Sealed: sealedAs, Nonce: make([]byte, l.seal.NonceSize())}
	if _, err := rand.Read(s.Nonce); err != nil {
		return nil, err
	}
	s.Data = l.seal.Seal(nil, s.Nonce, data, []byte(id))
	out, err := json.Marshal(s)
	return append(out, '\n'), err
}

// opened returns the content of an entry, decrypted if necessary. If that fails, why says so.
func (l *List) opened(id string, data []byte) (plain []byte, why string) {
	var s sealed
	if json.Unmarshal(data, &s) != nil || s.Sealed == "" {
		return data, "" // decode reports what is wrong
	}
	switch {
	case s.Sealed != sealedAs:
		return nil, "it is encrypted in a way that this version does not know"
	case l.seal == nil:
		return nil, NoKey
	case len(s.Nonce) != l.seal.NonceSize():
		return nil, "the encrypted file is damaged"
	}
	plain, err := l.seal.Open(nil, s.Nonce, s.Data, []byte(id))
	if err != nil {
		return nil, WrongKey
	}
	return plain, ""
}

// Why an encrypted entry cannot be read, in Entry.Damaged.
const (
	NoKey    = "it is encrypted, and no key is configured (dead_letters.key_env)"
	WrongKey = "it cannot be decrypted: it was encrypted with another key, or the file is damaged"
)
