package forward

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Client is the sender of a request to the forward proxy.
type Client struct {
	Agent, Class string // named by its credentials; empty means that its requests may name them
	Token        string // in its credentials
	// Trusted marks a client that is identified by a secret of its own; see [proxy.Intercepted].
	Trusted bool
	// Near marks a client on this machine. Only such a client may connect to addresses of this machine and of private
	// networks.
	Near bool
	// Anonymous marks a client without credentials, which gets tunnels alone; see [Options.Anonymous].
	Anonymous bool
	// Gate marks a gate of another run, whose connections that run has counted.
	Gate bool
}

// Credentials is the content of Proxy-Authorization: a bearer token, or the user and password of the proxy's URL.
type Credentials struct {
	Bearer         string
	User, Password string
}

// CredentialsOf reads the credentials of a request. ok is false if it finds none that it can read.
func CredentialsOf(r *http.Request) (c Credentials, ok bool) {
	scheme, value, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
	value = strings.TrimSpace(value)
	switch {
	case strings.EqualFold(scheme, "bearer") && value != "":
		return Credentials{Bearer: value}, true
	case strings.EqualFold(scheme, "basic"):
		text, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return c, false
		}
		c.User, c.Password, _ = strings.Cut(string(text), ":")
		return c, true
	}
	return c, false
}
