package daemon

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyWithin is how long a request to the daemon itself may take to come. They are small. Calls to a provider may be large, and take
// as long as they take.
const bodyWithin = 30 * time.Second

// hurry bounds how long the body of a request is waited for: also by the server, which reads the rest of one that nobody wants
// before it answers.
func hurry(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return
	}
	rc := http.NewResponseController(w)
	if rc.SetReadDeadline(time.Now().Add(bodyWithin)) == nil { // else it is no connection
		r.Body = &hurried{r.Body, rc}
	}
}

// hurried is a body that has to come in time. When all of it is there the connection may be silent again: whether the client is still
// there is found out by reading from it.
type hurried struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *hurried) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{}) // it could be set, so it can be taken back
	}
	return n, err
}
