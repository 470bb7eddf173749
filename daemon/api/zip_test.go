package api

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A status of 21 KB went over the network as it is, several times a second for each viewer.
func TestLargeAnswersAreCompressed(t *testing.T) {
	large := []byte(strings.Repeat(`{"name":"agent","class":"p1"}`, 700))
	for _, c := range []struct {
		accept string
		body   []byte
		zipped bool
	}{
		{"gzip", large, true},
		{"deflate, GZIP;q=0.5, br", large, true},
		{"gzip; q=1.0", large, true},
		{"gzip;q=0", large, false},
		{"gzip;q=x", large, false},
		{"br, deflate", large, false},
		{"", large, false},
		{"gzip", large[:100], false},
	} {
		for range 2 { // writers are used again
			w := httptest.NewRecorder()
			q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/status", nil)
			q.Header.Set("Accept-Encoding", c.accept)
			if err := send(w, q, c.body); err != nil {
				t.Fatal(err)
			}
			if zipped := w.Header().Get("Content-Encoding") == "gzip"; zipped != c.zipped || w.Header().Get("Vary") != "Accept-Encoding" {
				t.Errorf("%q: %v", c.accept, w.Header())
				continue
			}
			var got io.Reader = w.Body
			if c.zipped {
				if w.Body.Len() > len(large)/10 {
					t.Errorf("%d bytes became %d", len(large), w.Body.Len())
				}
				z, err := gzip.NewReader(w.Body)
				if err != nil {
					t.Fatal(err)
				}
				got = z
			}
			if text, err := io.ReadAll(got); err != nil || !bytes.Equal(text, c.body) {
				t.Errorf("%q: another body, %v", c.accept, err)
			}
		}
	}
}
