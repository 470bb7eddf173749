package framing

import (
	"net/http"
	"slices"
	"strings"
)

// IgnoreHTTP2Offer removes from a request the offer to go on in HTTP/2 (Upgrade: h2c), which Java's HttpClient and
// curl --http2 make with each plain request. A server may ignore any offer of another protocol (RFC 9110, section
// 7.8). What else the request offers stays.
func IgnoreHTTP2Offer(r *http.Request) {
	offers := tokens(r.Header["Upgrade"])
	rest := without(offers, "h2c")
	if len(rest) == len(offers) {
		return
	}
	gone := []string{"HTTP2-Settings"}
	if len(rest) == 0 {
		gone = append(gone, "Upgrade")
	}
	put(r.Header, "Upgrade", rest)
	put(r.Header, "Connection", without(tokens(r.Header["Connection"]), gone...))
	r.Header.Del("HTTP2-Settings")
}

// tokens returns the elements of a header with comma-separated values.
func tokens(values []string) (list []string) {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

func without(list []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, s) })
	})
}

func put(h http.Header, name string, list []string) {
	if len(list) == 0 {
		h.Del(name)
		return
	}
	h.Set(name, strings.Join(list, ", "))
}
