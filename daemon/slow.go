package daemon

import (
	"net/http"
	"time"
)

// bodyWithin is how long the body of a request to the daemon itself may take to arrive. Such bodies are small. Calls to
// a provider may be large, and have no such limit.
const bodyWithin = 30 * time.Second

// hurry bounds how long the server waits for the body of a request. That includes the server reading an unwanted rest
// before it responds. Once the whole body is there, the connection may be idle again.
func hurry(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin)) // an error means that it is not a connection
	}
}
