// Package storeurl checks the form of store URLs, for the configuration and for the command line.
package storeurl

import (
	"errors"
	"slices"
	"strings"
)

// Schemes lists the URL schemes of the stores.
var Schemes = []string{
	"mem", "file", "redis", "rediss", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel", "redis+unix",
	"http", "https", "http+unix",
}

// Split returns the scheme of url and what follows the colon. It checks the scheme, and all of mem: and file: URLs. The
// error does not show the URL because it may hold a password.
func Split(url string) (scheme, rest string, err error) {
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case !ok || !slices.Contains(Schemes, scheme):
		return "", "", errors.New("it has to begin with one of " + strings.Join(Schemes, ":, ") + ":")
	case scheme == "mem" && rest != "":
		return "", "", errors.New("nothing follows mem:, the memory of this process")
	case scheme == "file" && (strings.HasPrefix(rest, "//") || strings.ContainsRune(rest, 0)):
		return "", "", errors.New("after file: comes a directory, as in file:/var/lib/sluice")
	}
	return scheme, rest, nil
}
