package dashboard

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func ask(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestThePage(t *testing.T) {
	w := ask(t, "GET", "/")
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Etag") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if !strings.Contains(w.Body.String(), "<title>Sluice</title>") {
		t.Error("it has another title")
	}
	if w := ask(t, "HEAD", "/"); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}

// Every response has the security headers: an error page can be framed and sniffed like any other.
func TestHeaders(t *testing.T) {
	for _, c := range []struct{ method, path string }{{"GET", "/"}, {"GET", "/page/main.js"}, {"GET", "/page/nothing.js"}, {"POST", "/"}} {
		h := ask(t, c.method, c.path).Header()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if h.Get(name) != want {
				t.Errorf("%s %s: %s is %q", c.method, c.path, name, h.Get(name))
			}
		}
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "frame-ancestors 'none'"} {
			if !strings.Contains(h.Get("Content-Security-Policy"), rule) || strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
				t.Errorf("%s %s: %q", c.method, c.path, h.Get("Content-Security-Policy"))
			}
		}
	}
}

func TestAssets(t *testing.T) {
	for path, kind := range map[string]string{
		"/page/main.js": "text/javascript; charset=utf-8", "/page/style.css": "text/css; charset=utf-8", "/page/icon.svg": "image/svg+xml",
	} {
		w := ask(t, "GET", path)
		tag := w.Header().Get("Etag")
		if w.Code != 200 || w.Header().Get("Content-Type") != kind || len(tag) < 10 || w.Header().Get("Cache-Control") != "no-cache" || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		if w := ask(t, "GET", path, "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s again: %d with %d bytes", path, w.Code, w.Body.Len())
		}
		if w := ask(t, "GET", path, "If-None-Match", `"older"`); w.Code != 200 {
			t.Errorf("%s changed: %d", path, w.Code)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	for _, path := range []string{"/page", "/page/", "/page/index.html", "/index.html", "/page/../dashboard.go", "/page/main.js/", "/v1/status", "/page/%00"} {
		if w := ask(t, "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if w := ask(t, method, "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

// All referenced files exist and are local, and data never becomes markup.
func TestFilesAgree(t *testing.T) {
	all := load()
	refers := regexp.MustCompile(`(?:from '\./|(?:src|href)="/page/)([^'"]+)['"]`)
	used := map[string]bool{"/": true}
	for at, a := range all {
		text := string(a.body)
		for _, m := range refers.FindAllStringSubmatch(text, -1) {
			used["/page/"+m[1]] = true
			if _, ok := all["/page/"+m[1]]; !ok {
				t.Errorf("%s refers to %s, which is not there", at, m[1])
			}
		}
		if n := strings.Count(text, "\n"); n >= 500 {
			t.Errorf("%s has %d lines", at, n)
		}
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "//cdn", "https://", " style=", "onclick="} {
			if strings.Contains(text, word) {
				t.Errorf("%s has %q", at, word)
			}
		}
		if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), "http://") {
			t.Errorf("%s names another host", at)
		}
		if at == "/" && regexp.MustCompile(`<script(?:>| type="module">)|<style`).MatchString(text) {
			t.Error("the page has a script or a style of its own, which its policy forbids")
		}
	}
	for at := range all {
		if !used[at] {
			t.Errorf("%s is served, and nothing refers to it", at)
		}
	}
}
