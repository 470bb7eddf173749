package provider

import (
	"encoding/base64"
	"strings"
)

// Key returns the API key of a call, or empty if it has none.
func (v *vendor) Key(header map[string][]string) string {
	for _, field := range v.keys {
		if key := credentials(fieldOf(header, field)); key != "" {
			return key
		}
	}
	return ""
}

// Auth returns the header that a provider takes API keys in, and the prefix before the key.
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

// fieldOf returns the first value of a header field. The case of its name does not matter.
func fieldOf(header map[string][]string, field string) string {
	for name, values := range header {
		if len(name) == len(field) && strings.EqualFold(name, field) && len(values) > 0 {
			return strings.TrimSpace(values[0])
		}
	}
	return ""
}

// credentials returns the part of a header field that identifies the caller and stays the same from call to call.
func credentials(value string) string {
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok {
		return value
	}
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer", "token":
		return rest
	case "basic": // a key as the user name, or user and password
		if plain, err := base64.StdEncoding.DecodeString(rest); err == nil {
			return strings.TrimSuffix(string(plain), ":")
		}
		return rest
	case "aws4-hmac-sha256": // the rest is a signature, which changes with each call
		_, id, _ := strings.Cut(rest, "Credential=")
		id, _, _ = strings.Cut(id, "/")
		return id
	}
	return value
}
