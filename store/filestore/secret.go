//go:build linux || darwin || windows

package filestore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// Secret implements [store.Secrets]. The secret of a name is the file NAME.secret next to the pools. Only its user
// can read it.
func (s *Store) Secret(_ context.Context, name string, fresh []byte) ([]byte, error) {
	path := filepath.Join(filepath.Dir(s.dir), name+".secret")
	secret, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(path, fresh); err == nil {
			secret, err = readSecret(path) // another process may have created it
		}
	}
	if err != nil {
		return nil, failed("read", path, err)
	}
	return secret, nil
}

var errSecret = errors.New("it does not hold a secret; remove the file, and Sluice makes a new one")

func readSecret(path string) ([]byte, error) {
	f, err := statedir.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4*store.SecretSize))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(string(text))
	if err != nil || len(secret) != store.SecretSize {
		return nil, errSecret
	}
	return secret, nil
}

// makeSecret creates the file atomically, unless it exists.
func makeSecret(path string, secret []byte) error {
	part := path + "." + rand.Text()
	f, err := statedir.Open(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.WriteString(hex.EncodeToString(secret))
	if err = errors.Join(err, f.Close()); err == nil {
		if err = os.Link(part, path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(part))
}
