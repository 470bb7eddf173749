package eventlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// version is that of the lines. New fields and kinds of events do not change it: who does not know them passes over them. It is raised when
// an earlier version would misread a line. It stands in the file that is locked, so that lines are events and nothing else; a log
// without it was written before there were versions, and is one of version 1.
const version = 1

// form is what is in the file that is locked.
type form struct {
	Sluice  string `json:"sluice"`
	Version int    `json:"version"`
}

// maxForm bounds it.
const maxForm = 256

// NewerError tells that a later version of Sluice writes the log of a directory.
type NewerError struct {
	Version int // of its lines
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the event log has version %d, and this version of Sluice knows versions up to %d", e.Version, version)
}

// Hint says what to do about it.
func (e *NewerError) Hint() string {
	return "use the newer version of Sluice, or another state directory for this one: XDG_STATE_HOME=PATH"
}

// mark writes the version into the file that is locked, if none is there. All who do it at once write the same.
func mark(l *os.File) error {
	found, err := known(l)
	if err != nil || found {
		return err
	}
	text, err := json.Marshal(form{"events", version})
	if err == nil {
		_, err = l.WriteAt(append(text, '\n'), 0)
	}
	return err
}

// known reads the version of a log. It reports false if there is none that could be read, and an error if it is a later one.
func known(l io.ReaderAt) (bool, error) {
	text := make([]byte, maxForm)
	n, err := l.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	var f form
	if json.Unmarshal(text[:n], &f) != nil || f.Sluice != "events" || f.Version < 1 {
		return false, nil
	}
	if f.Version > version {
		return true, &NewerError{f.Version}
	}
	return true, nil
}
