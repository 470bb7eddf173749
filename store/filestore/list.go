//go:build linux || darwin || windows

package filestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluicehq/sluice/store"
)

// Pools implements [store.Lister].
func (s *Store) Pools(ctx context.Context) (list store.Listing, err error) {
	dirs, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the directory is missing if the disk was full; then there are no pools
		return list, failed("read", s.dir, err)
	}
	defer list.Sort()
	for _, d := range dirs {
		if err := ctx.Err(); err != nil {
			return list, failed("read", s.dir, err)
		}
		if !d.IsDir() || strings.ToLower(d.Name()) != d.Name() { // only directories that were moved aside have capitals, in their timestamp
			continue
		}
		spec, err := s.stated(ctx, filepath.Join(s.dir, d.Name()))
		if errors.Is(err, errAgain) || err == nil && fileName(spec.Name) != d.Name() {
			continue // it was removed, or its directory was renamed
		}
		if err != nil {
			err = fmt.Errorf("pool %s: %w", d.Name(), err)
		}
		if !list.Add(spec, err) {
			break
		}
	}
	return list, nil
}

// stated reads the spec of the pool in dir.
func (s *Store) stated(ctx context.Context, dir string) (spec store.Spec, err error) {
	if _, err := os.Lstat(filepath.Join(dir, "state")); errors.Is(err, fs.ErrNotExist) {
		return spec, errAgain
	}
	st, err := s.enter(ctx, dir, store.Spec{ReadOnly: true}, nil) // cannot create a removed pool again: the spec has no name
	if err != nil {
		return spec, err
	}
	st.mu.Lock()
	spec = st.stated
	st.mu.Unlock()
	return spec, st.shut(context.Background())
}
