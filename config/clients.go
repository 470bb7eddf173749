package config

import (
	"fmt"
	"path/filepath"

	"github.com/sluicehq/sluice/internal/clients"
)

// ClientTable returns the clients that are known: the built-in ones and those in the directory that the file names.
func (f *File) ClientTable() (*clients.Table, error) {
	if f.Clients == "" {
		return clients.Builtin(), nil
	}
	dir := f.Clients
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(f.dir, dir)
	}
	t, err := clients.Builtin().With(dir)
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	return t, nil
}
