package eventlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// version is the version of the line format. New fields and kinds of events do not change it: older readers skip what
// they do not know. Raise it when an older version would misread a line. The version is stored in the lock file, so
// that the log contains only events. A log without a version predates versions and counts as version 1.
const version = 1

// form is the content of the lock file.
type form struct {
	Sluice  string `json:"sluice"`
	Version int    `json:"version"`
}

// maxForm bounds the content of the lock file, in bytes.
const maxForm = 256

// NewerError reports that a newer version of Sluice writes the log.
type NewerError struct {
	Version int // of the log
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the event log has version %d, and this version of Sluice knows versions up to %d", e.Version, version)
}

// Hint says what to do about the error.
func (e *NewerError) Hint() string {
	return "use the newer version of Sluice, or another state directory for this one: XDG_STATE_HOME=PATH"
}

// mark writes the version to the lock file if it has none. Concurrent writers write the same bytes.
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

// known checks the version of a log. It reports false if no version can be read, and returns an error if the version is
// newer than this program.
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
