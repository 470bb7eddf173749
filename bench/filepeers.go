package main

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Names that the bars use.
const (
	nameBare         = "bare: flock + 256 bytes of mmap"
	nameJSON         = "flock + JSON, window of 80"
	nameSQLite       = "SQLite WAL, bucket"
	nameFileAcquire  = "sluice, acquire"
	nameFileComplete = "sluice, acquire + close"
)

// fileContenders are the contenders that share a file. Sluice adds itself in sluicefile.go.
var fileContenders = []fileContender{
	{nameBare, 8, nil, openBare},
	{nameJSON, 1, prepareJSON, openJSON(false)},
	{"the same, file kept open", 1, prepareJSON, openJSON(true)},
	{nameSQLite, 1, func(dir string) error { return prepareSQLite(dir, wideOpen) }, openBucket},
}

// openBare is the lower bound: the kernel's lock, and a write of as many bytes as a small state has.
func openBare(dir string) (fileTaker, error) {
	f, err := os.OpenFile(filepath.Join(dir, "bare"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fileTaker{}, err
	}
	fd := int(f.Fd())
	const size = 4096
	if err := f.Truncate(size); err != nil {
		return fileTaker{}, errors.Join(err, f.Close())
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fileTaker{}, errors.Join(err, f.Close())
	}
	take := func() (bool, error) {
		if err := flock(fd, unix.LOCK_EX); err != nil {
			return false, err
		}
		for i := range 256 {
			mem[i]++
		}
		return true, flock(fd, unix.LOCK_UN)
	}
	return fileTaker{take: take, done: func() error { return errors.Join(unix.Munmap(mem), f.Close()) }}, nil
}

// flock retries when the runtime interrupts it.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
