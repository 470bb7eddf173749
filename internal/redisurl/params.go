package redisurl

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds on timeout=.
const (
	minTimeout = 10 * time.Millisecond
	maxTimeout = time.Minute
)

// parameter is a query parameter of a URL.
type parameter struct {
	name string
	set  func(a *Address, value string) error
	fits func(a *Address) bool // nil: always
	only string                // with which URLs it fits, for the error text
}

func withTLS(a *Address) bool { return a.TLS }

const onlyTLS = "with rediss://"

var parameters = []parameter{
	{name: "prefix", set: setPrefix},
	{name: "timeout", set: setTimeout},
	{name: "db", set: (*Address).database, fits: func(a *Address) bool { return a.unix }, only: "with redis+unix://; elsewhere it follows the host, such as redis://host:6379/1"},
	{name: "sentinel_user", set: text(func(a *Address) *string { return &a.SentinelUser }), fits: withSentinels, only: onlySentinels},
	{name: "sentinel_password", set: setSentinelPassword, fits: withSentinels, only: onlySentinels},
	{name: "cert", set: text(func(a *Address) *string { return &a.Cert }), fits: withTLS, only: onlyTLS},
	{name: "key", set: text(func(a *Address) *string { return &a.Key }), fits: withTLS, only: onlyTLS},
	{name: "ca", set: text(func(a *Address) *string { return &a.CA }), fits: withTLS, only: onlyTLS},
	{name: "servername", set: text(func(a *Address) *string { return &a.ServerName }), fits: withTLS, only: onlyTLS},
	{name: "insecure", set: setInsecure, fits: withTLS, only: onlyTLS},
}

func withSentinels(a *Address) bool { return a.Mode == Sentinel }

const onlySentinels = "with redis+sentinel://"

// parameters reads name=value&name=value.
func (a *Address) parameters(query string) error {
	if query == "" {
		return nil
	}
	seen := map[string]bool{}
	for i, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		p := find(name)
		switch {
		case p == nil:
			// The name is not quoted, because it may be the rest of a password with a & in it.
			return fmt.Errorf("parameter %d: it is unknown; known are %s", i+1, names(parameters))
		case seen[name]:
			return fmt.Errorf("%s: it is given twice", name)
		case p.fits != nil && !p.fits(a):
			return fmt.Errorf("%s: it is only for use %s", name, p.only)
		}
		seen[name] = true
		decoded, err := url.PathUnescape(value)
		if err != nil {
			return fmt.Errorf("%s: a %% has to be followed by two hexadecimal digits; write %%25 for the sign itself", name)
		}
		if decoded == "" || strings.ContainsRune(decoded, 0) || !utf8.ValidString(decoded) {
			return fmt.Errorf("%s: expected a value after the =", name)
		}
		if err := p.set(a, decoded); err != nil {
			return err
		}
	}
	switch {
	case (a.Cert == "") != (a.Key == ""):
		return errors.New("cert, key: expected both or neither: the files with the client's certificate and with its key")
	case a.Insecure && (a.CA != "" || a.ServerName != ""):
		return errors.New("insecure: it makes ca and servername mean nothing; leave it out, or them")
	}
	return nil
}

func find(name string) *parameter {
	for i := range parameters {
		if parameters[i].name == name {
			return &parameters[i]
		}
	}
	return nil
}

func text(field func(a *Address) *string) func(a *Address, value string) error {
	return func(a *Address, value string) error {
		*field(a) = value
		return nil
	}
}

func setPrefix(a *Address, value string) error {
	if len(value) > maxPrefix || strings.ContainsFunc(value, notInPrefix) {
		return fmt.Errorf("prefix: expected at most %d letters, digits and . - _ : / + @", maxPrefix)
	}
	a.Prefix = value
	return nil
}

func setTimeout(a *Address, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < minTimeout || d > maxTimeout {
		return fmt.Errorf("timeout: expected a duration from %v to %v, such as 2s", minTimeout, maxTimeout)
	}
	a.Timeout = d
	return nil
}

func setSentinelPassword(a *Address, value string) error {
	a.sentinelPassword = newSecret(value)
	return nil
}

func setInsecure(a *Address, value string) error {
	if value != "true" && value != "false" {
		return errors.New("insecure: expected true or false; true takes any certificate and is for tests")
	}
	a.Insecure = value == "true"
	return nil
}
