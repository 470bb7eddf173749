package provider

import (
	"encoding/base64"
	"strings"
)

// Key returns the API key of a call, empty if it has none.
func (v *vendor) Key(header map[string][]string) string {
	for _, field := range v.keys {
		if key := credentials(fieldOf(header, field)); key != "" {
			return key
		}
	}
	return ""
}

// Auth is the header that a provider takes API keys in, and what stands before the key there.
func Auth(d Dialect) (header, prefix string) {
	v, ok := d.(*vendor)
	if !ok {
		v = &genericVendor
	}
	if header = v.keys[0]; header == "authorization" {
		prefix = "Bearer "
	}
	return header, prefix
}

// fieldOf is the first value of a field, in whatever case its name is.
func fieldOf(header map[string][]string, field string) string {
	for name, values := range header {
		if len(name) == len(field) && strings.EqualFold(name, field) && len(values) > 0 {
			return strings.TrimSpace(values[0])
		}
	}
	return ""
}

// credentials is the part of a field that tells whose the call is, and stays the same from one call
// to the next.
func credentials(value string) string {
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return value
	}
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer", "token":
		return rest
	case "basic": // a key as the user's name, or both
		if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return strings.TrimSuffix(string(plain), ":")
		}
		return rest
	case "aws4-hmac-sha256": // the rest is a signature, another one each time
		_, id, _ := strings.Cut(rest, "Credential=")
		id, _, _ = strings.Cut(id, "/")
		return id
	}
	return value
}
