package main

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// jsonWindow is a rolling window as people write it by hand: the times of sent requests in a JSON file, which is read
// and written as a whole under a lock.
type jsonWindow struct {
	lock   *os.File
	path   string
	data   *os.File // kept open; nil: opened for every request, as os.WriteFile does
	limit  int
	window time.Duration
	now    func(sent []time.Time) time.Time
}

const jsonEntries = 80

func openWindow(dir string, keep bool, limit int, window time.Duration, now func([]time.Time) time.Time) (*jsonWindow, error) {
	w := &jsonWindow{path: filepath.Join(dir, "window.json"), limit: limit, window: window, now: now}
	var err error
	if w.lock, err = os.OpenFile(w.path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if keep {
		if w.data, err = os.OpenFile(w.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, errors.Join(err, w.lock.Close())
		}
	}
	return w, nil
}

func (w *jsonWindow) close() error {
	err := w.lock.Close()
	if w.data != nil {
		err = errors.Join(err, w.data.Close())
	}
	return err
}

// prepareJSON fills the window.
func prepareJSON(dir string) error {
	w, err := openWindow(dir, false, jsonEntries, time.Minute, stepClock)
	if err != nil {
		return err
	}
	for range jsonEntries {
		if _, err := w.take(); err != nil {
			return errors.Join(err, w.close())
		}
	}
	return w.close()
}

func openJSON(keep bool) func(string) (fileTaker, error) {
	return func(dir string) (fileTaker, error) {
		w, err := openWindow(dir, keep, jsonEntries, time.Minute, stepClock)
		if err != nil {
			return fileTaker{}, err
		}
		return fileTaker{take: w.take, done: w.close}, nil
	}
}

// stepClock advances the time with every request so that the window stays full but accepts each one, because refusing
// would cost less.
func stepClock(sent []time.Time) time.Time {
	if len(sent) == 0 {
		return time.Now()
	}
	return sent[len(sent)-1].Add(time.Minute / jsonEntries)
}

func (w *jsonWindow) take() (ok bool, err error) {
	fd := int(w.lock.Fd())
	if err := flock(fd, unix.LOCK_EX); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, flock(fd, unix.LOCK_UN)) }()
	text, err := w.read()
	if err != nil {
		return false, err
	}
	var sent []time.Time
	if len(text) > 0 {
		if err := json.Unmarshal(text, &sent); err != nil {
			return false, err
		}
	}
	now := w.now(sent)
	for len(sent) > 0 && now.Sub(sent[0]) >= w.window {
		sent = sent[1:]
	}
	if len(sent) >= w.limit {
		return false, nil
	}
	if text, err = json.Marshal(append(sent, now)); err != nil {
		return false, err
	}
	err = w.write(text)
	return err == nil, err
}

func (w *jsonWindow) read() ([]byte, error) {
	if w.data == nil {
		text, err := os.ReadFile(w.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return text, err
	}
	if _, err := w.data.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(w.data)
}

func (w *jsonWindow) write(text []byte) error {
	if w.data == nil {
		return os.WriteFile(w.path, text, 0o600)
	}
	if err := w.data.Truncate(0); err != nil {
		return err
	}
	_, err := w.data.WriteAt(text, 0)
	return err
}
