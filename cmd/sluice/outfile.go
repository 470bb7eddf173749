package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// outFile is a file that a flag asks for, besides the command's output.
type outFile struct {
	flag string // such as --plot
	what string // such as picture
	path string
}

// check checks that the file can be written, before a long run begins.
func (o *outFile) check() error {
	switch info, err := os.Stat(o.path); {
	case err == nil && info.IsDir():
		return o.noPlace(fmt.Errorf("%s is a directory", o.path))
	case err == nil && !info.Mode().IsRegular(): // a device would be replaced by the file
		return o.noPlace(fmt.Errorf("%s is not a file", o.path))
	}
	dir := filepath.Dir(o.path)
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return o.noPlace(err)
	}
	return nil
}

// write writes the file, completely or not at all. It follows a symbolic link.
func (o *outFile) write(content func(io.Writer) error) error {
	file := o.path
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".sluice-*"+filepath.Ext(file))
	if err != nil {
		return o.noPlace(err)
	}
	err = errors.Join(content(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the earlier error matters more
	}
	return written(err)
}

// noPlace returns the error for a file that cannot be written at its path.
func (o *outFile) noPlace(err error) error {
	return &failure{
		code: exitUsage, message: fmt.Sprintf("no %s can be written there: %v", o.what, err),
		hint: o.flag + " takes the name of a file, in a directory that is there and can be written to",
	}
}
