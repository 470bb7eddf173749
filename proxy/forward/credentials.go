package forward

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Client is who sends through the forward proxy.
type Client struct {
	Agent, Class string // that its credentials name; empty: its requests may
	Token        string // in its credentials
	// Trusted marks a client that is known by a secret of its own; see [proxy.Intercepted].
	Trusted bool
	// Near marks a client on this machine. Only such a client may be connected to addresses of this machine and of
	// private networks.
	Near bool
}

// Credentials are what a client sends in Proxy-Authorization: a bearer's token, or the user and password of the proxy's URL.
type Credentials struct {
	Bearer         string
	User, Password string
}

// CredentialsOf reads the credentials of a request. It reports false if there are none that it can read.
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
