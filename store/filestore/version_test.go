//go:build linux || darwin || windows

package filestore_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store/filestore"
)

// The files in testdata were made by "sluice acquire" of the last version with another format, when it was current.
// Such a pool that may still count is refused, and stays unchanged.
func TestAPoolOfARealOlderVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	unpack(t, "testdata/version11.tgz", dir)
	state := filepath.Join(dir, "pools", "api", "state")
	old := read(t, state)
	const atVersion, atNow = 8, 96
	if v := binary.LittleEndian.Uint32(old[atVersion:]); v != 11 {
		t.Fatalf("the file has version %d", v)
	}
	binary.LittleEndian.PutUint64(old[atNow:], uint64(time.Now().UnixMicro())) // it was used just now
	write(t, state, old)
	s, err := filestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	spec := wide()
	spec.Name = "api"
	_, err = s.Pool(t.Context(), spec)
	unusable(t, err, "written by another version of Sluice")
	if !bytes.Equal(read(t, state), old) {
		t.Error("the file has changed")
	}
}

func unpack(t *testing.T, name, dir string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
