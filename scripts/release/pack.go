package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// entry is a file in an archive.
type entry struct {
	name, from string
	mode       os.FileMode
}

// packTar writes an archive that depends on nothing but its content: no owner, no times of this machine.
func packTar(out io.Writer, dir string, content []entry, made time.Time) error {
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zipped)
	for _, e := range content {
		data, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		head := tar.Header{Name: dir + "/" + e.name, Mode: int64(e.mode), Size: int64(len(data)), ModTime: made, Format: tar.FormatPAX}
		if err := w.WriteHeader(&head); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zipped.Close())
}

func packZip(out io.Writer, dir string, content []entry, made time.Time) error {
	w := zip.NewWriter(out)
	for _, e := range content {
		data, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		head := zip.FileHeader{Name: dir + "/" + e.name, Method: zip.Deflate, Modified: made}
		head.SetMode(e.mode)
		f, err := w.CreateHeader(&head)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return w.Close()
}
