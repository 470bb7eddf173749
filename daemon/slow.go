package daemon

import (
	"net/http"
	"time"
)

// bodyWithin is how long a request to the daemon itself may take to come. They are small. Calls to a provider may be large, and take
// as long as they take.
const bodyWithin = 30 * time.Second

// hurry bounds how long the body of a request is waited for: also by the server, which reads the rest of one that nobody wants
// before it answers. When all of it is there, the connection may be silent again.
func hurry(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // else it is no connection
	}
}
