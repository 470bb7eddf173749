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
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without room it was not made, and has no pools
		return list, failed("read", s.dir, err)
	}
	defer list.Sort()
	for _, d := range dirs {
		if err := ctx.Err(); err != nil {
			return list, failed("read", s.dir, err)
		}
		if !d.IsDir() || strings.ToLower(d.Name()) != d.Name() { // only what was moved aside has capitals, in its time
			continue
		}
		spec, err := s.stated(ctx, filepath.Join(s.dir, d.Name()))
		if errors.Is(err, errAgain) || err == nil && fileName(spec.Name) != d.Name() {
			continue // it is gone, or belongs to another directory
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

// stated reads what is stated of the pool in dir.
func (s *Store) stated(ctx context.Context, dir string) (spec store.Spec, err error) {
	if _, err := os.Lstat(filepath.Join(dir, "state")); errors.Is(err, fs.ErrNotExist) {
		return spec, errAgain
	}
	st, err := s.enter(ctx, dir, store.Spec{ReadOnly: true}, nil) // should it be gone by now, no pool can be made without a name
	if err != nil {
		return spec, err
	}
	st.mu.Lock()
	spec = st.stated
	st.mu.Unlock()
	return spec, st.shut()
}
